//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sandbox-exec" {
		passOn()
	}
	os.Exit(testbox.Main(m, map[string]func(){
		"host": hostToBeKilled,
		"victim": func() { // of TestEscapes: a process of the host
			fmt.Println("ready")
			_, _ = os.Stdin.Read(make([]byte, 1)) // until its end
		},
	}))
}

// open returns an engine of a Mac, which with may change.
func open(t testing.TB, with func(*engine.Host)) *engine.Engine {
	t.Helper()
	h, err := macHost()
	if err != nil {
		t.Fatal(err)
	}
	if with != nil {
		with(&h)
	}
	return testbox.OpenWith(t, engine.Options{Host: &h})
}

// limit bounds what must end soon, even on a busy machine.
const limit = time.Minute

func start(t testing.TB, eng *engine.Engine, s engine.Spec) *engine.Sandbox {
	t.Helper()
	box := testbox.Start(t, eng, s)
	if level := box.Plan().Level; level != engine.LevelSeatbelt {
		t.Fatalf("level %s", level)
	}
	return box
}

// sandbox starts a sandbox in a new engine.
func sandbox(t testing.TB, s engine.Spec) *engine.Sandbox {
	t.Helper()
	return start(t, open(t, nil), s)
}

// output returns what a program prints. The program must succeed.
func output(t testing.TB, box *engine.Sandbox, name string, args ...string) string {
	t.Helper()
	res := testbox.Run(t, box, name, args...)
	if res.Outcome != engine.OutcomeOK {
		t.Fatalf("%s %q: %s %d, stdout %s, stderr %s", name, args, res.Outcome, res.ExitCode, res.Stdout, res.Stderr)
	}
	return string(res.Stdout)
}

func sh(t testing.TB, box *engine.Sandbox, script string) string {
	t.Helper()
	return strings.TrimSpace(output(t, box, "sh", "-c", script))
}

// dir makes a directory of the host and returns its real name, as rules and plans have it.
func dir(t testing.TB) string {
	t.Helper()
	d, err := filepath.EvalSymlinks(testenv.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// private makes the engine put private directories into a directory of the test, which shows what is left.
func private(t testing.TB) (temp string) {
	t.Helper()
	temp = dir(t)
	old, had := os.LookupEnv("TMPDIR")
	if err := os.Setenv("TMPDIR", temp); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.Unsetenv("TMPDIR")
		if had {
			err = os.Setenv("TMPDIR", old)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return temp
}

// empty checks that sandboxes have left nothing.
func empty(t testing.TB, temp string) {
	t.Helper()
	names, err := os.ReadDir(temp)
	if err != nil || len(names) > 0 {
		t.Errorf("left in the directory for temporary files: %v, %v", names, err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func needSeatbelt(t testing.TB) {
	t.Helper()
	testenv.Need(t, testenv.Seatbelt)
}

// needs skips the test if a program is missing that must run inside.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		testenv.Need(t, testenv.Program(p))
	}
}
