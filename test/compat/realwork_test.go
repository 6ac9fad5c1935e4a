//go:build linux

package compat

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// TestRealWork does everyday work outside and inside, and expects the same output. Limits are the defaults unless a
// test says otherwise.
func TestRealWork(t *testing.T) {
	eng := open(t)
	for _, w := range []struct {
		name, script string
		needs        []string
	}{
		{"pipeline", pipeline, nil},
		{"archives", archives, []string{"tar", "xz", "gzip"}},
		{"venv", venv, []string{"python3"}},
		{"pool", python(pool), []string{"python3"}},
		{"sqlite", python(sqlite), []string{"python3"}},
		{"node", node, []string{"node"}},
		{"java", java, []string{"javac"}},
	} {
		t.Run(w.name, func(t *testing.T) {
			need(t, w.needs...)
			same(t, eng, engine.Spec{}, w.script)
		})
	}
	t.Run("git", func(t *testing.T) { testGit(t, eng) })
	t.Run("make", func(t *testing.T) { testMake(t, eng) })
	t.Run("streams", func(t *testing.T) { testStreams(t, eng) })
	t.Run("go", func(t *testing.T) {
		asUser(t)
		testGo(t, eng)
	})
}

func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		testenv.Need(t, testenv.Program(p))
	}
}

// same runs a shell script outside in a fresh directory and inside in the private workspace. It must succeed, with the
// same output.
func same(t *testing.T, eng *engine.Engine, spec engine.Spec, script string) {
	t.Helper()
	want := run(t, func(args ...string) (ended, error) { return outside(directory(t), args...) }, script)
	box := testbox.Start(t, eng, spec)
	got := run(t, func(args ...string) (ended, error) { return inside(box, args...) }, script)
	equal(t, got, want)
}

// run runs a shell script on one side.
func run(t *testing.T, side func(args ...string) (ended, error), script string) ended {
	t.Helper()
	e, err := side("sh", "-euc", script)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func equal(t *testing.T, got, want ended) {
	t.Helper()
	t.Logf("outside %.1f s, inside %.1f s\n%s", want.took.Seconds(), got.took.Seconds(), want.text())
	if want.code != 0 {
		t.Errorf("outside: exit code %d", want.code)
	}
	if got.code != want.code || string(got.out) != string(want.out) || string(got.errOut) != string(want.errOut) {
		t.Errorf("outside: exit code %d\n%s\ninside: exit code %d\n%s", want.code, want.text(), got.code, got.text())
	}
}

// testGit clones a repository of the host and commits to the clone. Equal hashes mean equal work.
func testGit(t *testing.T, eng *engine.Engine) {
	need(t, "git")
	origin := directory(t)
	if e := run(t, func(args ...string) (ended, error) { return outside(origin, args...) },
		gitSetup+gitOrigin); e.code != 0 {
		t.Fatalf("exit code %d\n%s", e.code, e.text())
	}
	spec := engine.Spec{FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountBind, Source: origin, Target: origin,
		ReadOnly: true}}}}
	same(t, eng, spec, gitSetup+"origin="+origin+"\n"+gitClone)
}

// testMake builds in a directory of the host.
func testMake(t *testing.T, eng *engine.Engine) {
	need(t, "make", "gcc")
	uid := os.Geteuid()
	if uid == 0 {
		uid = 4242 // whose workspace it is, and so who guests are on the host
	}
	want := run(t, func(args ...string) (ended, error) { return outside(project(t, testbox.Nobody), args...) }, makeRun)
	dir := project(t, uid)
	box := testbox.Start(t, eng, engine.Spec{FS: engine.FS{Workspace: dir}})
	got := run(t, func(args ...string) (ended, error) { return inside(box, args...) }, makeRun)
	equal(t, got, want)
	for _, name := range []string{"hello", "main.o", "sum.o", "out/log"} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != uid {
			t.Errorf("%s belongs to %v, want %d", name, sys.Uid, uid)
		}
	}
}

// project writes the C project into a directory of that user.
func project(t *testing.T, uid int) string {
	t.Helper()
	dir := directory(t)
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// testStreams sends 100 MB through a command and the engine's pipes.
func testStreams(t *testing.T, eng *engine.Engine) {
	const size = 100_000_000
	sent, received := sha256.New(), sha256.New()
	c := testbox.Start(t, eng, engine.Spec{}).Command("cat")
	c.Stdin = io.TeeReader(io.LimitReader(&counter{}, size), sent)
	c.Stdout = received
	res, err := c.Run()
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcome != engine.OutcomeOK {
		t.Errorf("cat: %s, exit code %d\n%s", res.Outcome, res.ExitCode, res.Stderr)
	}
	want, got := hex.EncodeToString(sent.Sum(nil)), hex.EncodeToString(received.Sum(nil))
	if got != want {
		t.Errorf("received %s, sent %s", got, want)
	}
	t.Logf("%d bytes in %.1f s, sha256 %s", size, res.Usage.Wall.Seconds(), got)
}

// counter yields bytes in which any lost or doubled byte shows.
type counter struct{ n uint64 }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c.n * 0x9e3779b97f4a7c15 >> 56)
		c.n++
	}
	return len(p), nil
}
