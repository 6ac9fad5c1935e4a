//go:build linux

package test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the table of SECURITY.md")

// patience is how long a test waits for something that has to happen.
const patience = 10 * time.Second

// commandDir is a directory with tegmen in it, which every user may search.
func commandDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "tegmen")
	if built := os.Getenv("TEGMEN_BIN"); built != "" {
		if err := os.Symlink(built, bin); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if out, err := goBuild(bin, "../cmd/tegmen").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// goBuild builds as the Makefile does: static and small.
func goBuild(out, what string) *exec.Cmd {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", out, what)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}
