//go:build unix

package testbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// Nobody is the account of the host that root's guests are.
const Nobody = 65534

// Bind is a mount of a file or directory of the host.
func Bind(source, target string) engine.Mount {
	return engine.Mount{Type: engine.MountBind, Source: source, Target: target}
}

// Workspace makes a directory that guests own, whoever runs the tests.
func Workspace(t testing.TB) string {
	t.Helper()
	dir := testenv.Dir(t)
	GiveTo(t, dir, Nobody)
	return dir
}

// GiveTo has a tree belong to a user and the group of that number, if root runs the tests.
func GiveTo(t testing.TB, dir string, uid int) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, uid, uid))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// IDMap needs a file system that can have idmapped mounts.
func IDMap(dir string) testenv.Feature {
	return testenv.Try("idmap", func() error {
		h, err := engine.ProbeHost()
		if err == nil {
			err = h.TryIDMap(dir)
		}
		return err
	})
}

// Owner returns the uid of who owns a file.
func Owner(t testing.TB, path string) int {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// CommandDir makes a directory with tegmen in it, which every user may search. TEGMEN_BIN names one that is built
// already.
func CommandDir(t testing.TB) string {
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
	if out, err := GoBuild(bin, ModuleFile(t, "cmd/tegmen")).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// GoBuild returns a command that builds a package as the Makefile does: static and small.
func GoBuild(out, pkg string) *exec.Cmd {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}
