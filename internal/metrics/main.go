// Command metrics prints the numbers that the project holds itself to, and fails
// if one of them does not hold. Run it in the module's root: make metrics.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/source"
)

// Bounds of what is measured.
const (
	maxP90     = 30 // lines of a function
	maxLength  = 80
	maxColumns = 120
	minRatio   = 1.0
	minCover   = 70 // percent
)

var cover = flag.String("coverage", "off", "own coverage: off, print or check")

func main() {
	flag.Parse()
	r := &report{}
	files, err := sources()
	if err == nil {
		r.lengths(files)
		r.columns(files)
		r.ratio(files)
		r.comments(files)
		err = r.cycles()
	}
	if err == nil && *cover != "off" {
		err = r.coverage(*cover == "check")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(2)
	}
	if r.failed {
		os.Exit(1)
	}
}

func (r *report) lengths(files []file) {
	var lengths []int
	var long []string
	for _, f := range files {
		if f.kind != production {
			continue
		}
		for _, fn := range f.functions() {
			lengths = append(lengths, fn.lines)
			if fn.lines > maxLength {
				long = append(long, fmt.Sprintf("%s: %s has %d lines", fn.at, fn.name, fn.lines))
			}
		}
	}
	slices.Sort(lengths)
	n := len(lengths)
	p90, longest := lengths[n*9/10], lengths[n-1]
	value := fmt.Sprintf("median %d, p90 %d (at most %d), longest %d (at most %d), of %d in production code",
		lengths[n/2], p90, maxP90, longest, maxLength, n)
	r.row(p90 <= maxP90 && len(long) == 0, "function length", value, long...)
}

func (r *report) columns(files []file) {
	var long []string
	for _, f := range files {
		if f.kind != production || !f.isGo() {
			continue
		}
		for i, line := range strings.Split(f.text, "\n") {
			if n := len([]rune(line)); n > maxColumns {
				long = append(long, fmt.Sprintf("%s:%d: %d columns", f.path, i+1, n))
			}
		}
	}
	value := fmt.Sprintf("%d over %d columns in production Go; a tab is one", len(long), maxColumns)
	r.row(len(long) == 0, "long lines", value, long...)
}

func (r *report) ratio(files []file) {
	var lines [tests + 1]int
	for _, f := range files {
		lines[f.kind] += strings.Count(f.text, "\n")
	}
	ratio := float64(lines[tests]) / float64(lines[production])
	r.row(ratio >= minRatio, "tests : code", fmt.Sprintf("%.2f (at least %.1f), %d : %d lines, blank ones and comments included\n"+
		"     tests: _test.go, test/, %s, testdata programs and *.txtar\n"+
		"     code: all other Go, assembly, the guests' sources that are embedded; neither: golden texts",
		ratio, minRatio, lines[tests], lines[production], strings.Join(testPackages, ", ")))
}

func (r *report) comments(files []file) {
	var missing []string
	for _, f := range files {
		if f.kind != production || !f.isGo() {
			continue
		}
		for _, id := range append(source.Undocumented(f.syntax), source.UndocumentedFields(f.syntax)...) {
			missing = append(missing, fmt.Sprintf("%s: %s", f.fset.Position(id.Pos()), id.Name))
		}
	}
	r.row(len(missing) == 0, "undocumented", fmt.Sprintf("%d exported names and fields", len(missing)), missing...)
}

// cycles prints how large the knots of files are. arch_test.go decides which are
// allowed.
func (r *report) cycles() error {
	pkgs, err := source.Load(".", "linux", "./...")
	if err != nil {
		return err
	}
	var lines []string
	calls, references, all := 0, 0, 0
	for _, p := range pkgs {
		c, u := source.InCycles(p.Calls()), source.InCycles(p.References())
		calls, references, all = calls+c, references+u, all+len(p.Files)
		if u > 0 {
			lines = append(lines, fmt.Sprintf("%-20s %2d by calls, %2d by any reference, of %d", p.Path, c, u, len(p.Files)))
		}
	}
	value := fmt.Sprintf("%d by calls of functions and methods, %d by any reference, of %d", calls, references, all)
	r.row(true, "files in cycles", value, lines...)
	return nil
}
