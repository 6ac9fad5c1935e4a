//go:build linux

package compat

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// testGo checks and builds this project from source inside, with nothing compiled before. All limits are the defaults:
// the build cache of some 100 MiB fits into a private tmpfs.
func testGo(t *testing.T, eng *engine.Engine) {
	need(t, "go")
	root := moduleRoot(t)
	goroot, modules := goEnv(t, "GOROOT"), goEnv(t, "GOMODCACHE")
	testenv.Need(t, testenv.File(modules))
	const cache = "/gocache"
	env := []string{"GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOMODCACHE=" + modules,
		"PROJECT=" + root}
	spec := engine.Spec{
		Env: append(env, "GOCACHE="+cache, "PATH="+filepath.Join(goroot, "bin")+":/usr/bin:/bin"),
		FS:  engine.FS{Mounts: []engine.Mount{{Type: engine.MountTmpfs, Target: cache}}},
	}
	for _, dir := range []string{root, goroot, modules} {
		spec.FS.Mounts = append(spec.FS.Mounts, engine.Mount{Type: engine.MountBind, Source: dir, Target: dir,
			ReadOnly: true})
	}
	box := testbox.Start(t, eng, spec)
	in := func(args ...string) (ended, error) { return inside(box, args...) }
	// Outside, it is the account of the test, which can read the project and has compiled the standard library already.
	out := func(args ...string) (ended, error) { return own(append(env, "TMPDIR="+t.TempDir()), args...) }

	const vet = `cd "$PROJECT"; go vet ./... 2>&1`
	want := run(t, out, vet)
	if bytes.Contains(want.out, []byte("disabled by GOPROXY=off")) {
		t.Skipf("not all modules are in %s", modules)
	}
	equal(t, run(t, in, vet), want)
	// The same file on both sides, bit by bit, says more than any message.
	const build = `cd "$PROJECT"; go build -trimpath -buildvcs=false -o "$TMPDIR/tegmen" ./cmd/tegmen && sha256sum < "$TMPDIR/tegmen"`
	got := run(t, in, build)
	equal(t, got, run(t, out, build))
	t.Log(run(t, in, "df -h --output=target,used,iused /tmp "+cache).text())
}

// own runs a program outside as the account and in the environment of the test.
func own(env []string, args ...string) (ended, error) {
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), env...)
	begin := time.Now()
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ended{}, err
	}
	e := ended{code: c.ProcessState.ExitCode(), out: out, took: time.Since(begin)}
	if exit != nil {
		e.errOut = exit.Stderr
	}
	return e, nil
}

// moduleRoot returns the directory with this project's go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Skip("the source of this project is not above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatalf("go env %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}
