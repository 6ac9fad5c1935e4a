package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// covered are the packages whose own tests must reach most of them.
var covered = []string{"./engine", "./cmd/tegmen", "./agent"}

var percent = regexp.MustCompile(`coverage: ([0-9.]+)% of statements`)

// coverage runs the tests of the packages, each for itself.
func (r *report) coverage(check bool) error {
	for _, pkg := range covered {
		cmd := exec.Command("go", "test", "-cover", pkg)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", cmd, err, out)
		}
		m := percent.FindSubmatch(out)
		if m == nil {
			return fmt.Errorf("%s says no coverage: %s", cmd, out)
		}
		n, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return err
		}
		r.row(n >= minCover || !check, "own coverage", fmt.Sprintf("%.1f %% of %s (at least %d)", n, pkg, minCover))
	}
	return nil
}
