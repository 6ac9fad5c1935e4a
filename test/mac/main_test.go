//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// helper names what a copy of this test binary does, where that cannot be done in
// the test's own process.
const helper = "TEGMEN_TEST_HELPER"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sandbox-exec" {
		passOn()
	}
	switch os.Getenv(helper) {
	case "host":
		hostToBeKilled()
		return
	case "victim": // of TestEscapes: a process of the host
		fmt.Println("ready")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until its end
		return
	}
	os.Exit(testenv.Main(m))
}

// open returns an engine of a Mac. with, unless nil, changes that.
func open(t testing.TB, with func(*engine.Host)) *engine.Engine {
	t.Helper()
	h, err := macHost()
	if err != nil {
		t.Fatal(err)
	}
	if with != nil {
		with(&h)
	}
	eng, err := engine.Open(engine.Options{Host: &h})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// limit is how long what ends soon may take on a busy machine.
const limit = time.Minute

func start(t testing.TB, eng *engine.Engine, s engine.Spec) *engine.Sandbox {
	t.Helper()
	box, err := eng.Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	if level := box.Plan().Level; level != engine.LevelSeatbelt {
		t.Fatalf("level %s", level)
	}
	return box
}

// sandbox starts one in an engine of its own.
func sandbox(t testing.TB, s engine.Spec) *engine.Sandbox {
	t.Helper()
	return start(t, open(t, nil), s)
}

// within bounds what a test may wait for.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func run(t testing.TB, box *engine.Sandbox, name string, args ...string) *engine.Result {
	t.Helper()
	res, err := box.CommandContext(within(t, limit), name, args...).Run()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return res
}

// output is what a program prints, which must end OK.
func output(t testing.TB, box *engine.Sandbox, name string, args ...string) string {
	t.Helper()
	res := run(t, box, name, args...)
	if res.Outcome != engine.OK {
		t.Fatalf("%s %q: %s %d, stdout %s, stderr %s", name, args, res.Outcome, res.ExitCode, res.Stdout, res.Stderr)
	}
	return string(res.Stdout)
}

func sh(t testing.TB, box *engine.Sandbox, script string) string {
	t.Helper()
	return strings.TrimSpace(output(t, box, "sh", "-c", script))
}

// dir is a directory of the host by its real name, as rules and plans have it.
func dir(t testing.TB) string {
	t.Helper()
	d, err := filepath.EvalSymlinks(testenv.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// private has private directories made in one of the test's own, so that it can
// tell what is left.
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

// empty is what a sandbox leaves: nothing.
func empty(t testing.TB, temp string) {
	t.Helper()
	names, err := os.ReadDir(temp)
	if err != nil || len(names) > 0 {
		t.Errorf("left in the directory for temporary files: %v, %v", names, err)
	}
}

// marker is a number of seconds to sleep that is used nowhere else.
func marker(n int) string { return fmt.Sprintf("%d.%03d", 7000+os.Getpid()%1000, n) }

// alive lists processes of the host whose command line contains a marker.
func alive(t testing.TB, mark string) (found []string) {
	t.Helper()
	out, err := exec.Command("ps", "axww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if strings.Contains(line, mark) && len(fields) > 2 && !strings.HasPrefix(fields[1], "Z") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// until waits for something, which must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

func runs(t testing.TB, mark string) {
	t.Helper()
	until(t, "something runs that could survive", func() bool { return len(alive(t, mark)) > 0 })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func needSeatbelt(t testing.TB) {
	t.Helper()
	testenv.Need(t, testenv.Seatbelt)
}

// needs is for what programs run inside.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		testenv.Need(t, testenv.Program(p))
	}
}
