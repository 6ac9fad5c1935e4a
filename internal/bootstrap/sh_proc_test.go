package bootstrap_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/bootstrap"
	"github.com/tegmen-dev/tegmen/internal/fakehost"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// shNoProc before the words of a shell means that there is no /proc.
const shNoProc = "no-proc "

// shHideProc is a launch where there is no /proc, as on macOS, and the files are in
// dir.
func shHideProc(t testing.TB, l bootstrap.Launch, dir string) bootstrap.Launch {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, text := range l.Files {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(4+i)), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	l.Files = nil
	if runtime.GOOS != "linux" {
		return l
	}
	words := []string{"unshare", "-Urm", "/bin/sh", "-c", `"$0" -t tmpfs none /proc && exec "$@"`, "mount", l.Argv[0]}
	for _, i := range []int{0, 5, 6} { // the run's PATH may have none of them
		name, err := exec.LookPath(words[i])
		if err != nil {
			t.Fatal(err)
		}
		words[i] = name
	}
	l.Argv = append(words, l.Argv[1:]...)
	return l
}

// shPrograms is a PATH that has shell scripts for programs first.
func shPrograms(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

// asleep returns when a process sleeps.
func asleep(t *testing.T, pid int) {
	until(t, func() bool {
		var state []byte
		var err error
		if runtime.GOOS == "linux" {
			state, err = os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, state, _ = bytes.Cut(state, []byte(") "))
		} else {
			state, err = exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		}
		if err != nil {
			t.Error(err)
		}
		return t.Failed() || bytes.HasPrefix(state, []byte("S"))
	})
}

// A job that was killed during its call does not keep others from theirs when
// nobody has collected it, either.
func TestShellKilledCallerZombie(t *testing.T) {
	testenv.NoRace(t)
	const source = `
(null & printf '%s\n' $! >"$TMPDIR/pid"; exec sleep 60) & parent=$!
read -r go
until read -r pid <"$TMPDIR/pid"; do :; done 2>/dev/null
kill -9 "$pid"
add 1 2
kill "$parent"`
	shEach(t, func(t *testing.T, shell string) {
		if shell == shNoProc+"busybox sh" {
			return // its ps is its own
		}
		tools := fakehost.Tools()
		started := make(chan struct{})
		tools["null"] = func(c fakehost.Call) (any, error) {
			close(started)
			<-c.Canceled // the end of the channel
			return nil, nil
		}
		r := shRun(t, bootstrap.Script{Shell: shell, Source: source}, tools, func(cmd *exec.Cmd, _ *fakehost.Host) {
			cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
			if runtime.GOOS == "linux" { // where ps finds nothing without /proc
				cmd.Env = append(cmd.Env, shPrograms(t, map[string]string{"ps": `read -r pid <"$TMPDIR/pid" && [ "$*" = "-o stat= -p $pid" ] && echo Z+`}))
			}
			stdinUntil(t, cmd, started)
		})
		if r.stdout != "3\n" || r.stderr != "" {
			t.Errorf("got %q %q", r.stdout, r.stderr)
		}
	})
}

// A call that takes longer than the grace period of a dead process keeps its place,
// whether ps works or not.
func TestShellSlowCall(t *testing.T) {
	testenv.NoRace(t)
	shEach(t, func(t *testing.T, shell string) {
		for _, ps := range []string{"echo S", "exit 1"} {
			polls := filepath.Join(t.TempDir(), "polls")
			started := make(chan struct{})
			tools := fakehost.Tools()
			tools["null"] = func(c fakehost.Call) (any, error) {
				close(started)
				until(t, func() bool {
					info, err := os.Stat(polls)
					return err == nil && info.Size() > 350
				})
				return nil, nil
			}
			source := "_tegmen_sleep() { command printf . >>'" + polls + "'; }\nnull >&2 & read -r go\nadd 1 2; wait"
			r := shRun(t, bootstrap.Script{Shell: shell, Source: source}, tools, func(cmd *exec.Cmd, _ *fakehost.Host) {
				cmd.Env = append(cmd.Env, shPrograms(t, map[string]string{"ps": ps}))
				stdinUntil(t, cmd, started)
			})
			if r.stdout != "3\n" || r.stderr != "null\n" {
				t.Errorf("got %q %q", r.stdout, r.stderr)
			}
		}
	})
}

// A file that has the name of the lock already is not written to, and calls go
// without.
func TestShellLockTaken(t *testing.T) {
	testenv.NoRace(t)
	shEach(t, func(t *testing.T, shell string) {
		if !strings.HasPrefix(shell, shNoProc) {
			return // the lock has no name
		}
		var file string
		r := shRun(t, bootstrap.Script{Shell: shell, Source: "add 1 2; x=$(add 3 4); add 0 $x"}, fakehost.Tools(), func(cmd *exec.Cmd, _ *fakehost.Host) {
			for _, v := range cmd.Env {
				if tools, found := strings.CutPrefix(v, "TEGMEN_TOOLS="); found {
					file = filepath.Join(filepath.Dir(tools), "8")
				}
			}
			if err := os.WriteFile(file, []byte("other\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		if r.stdout != "3\n7\n" || r.stderr != "" {
			t.Errorf("got %q %q", r.stdout, r.stderr)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "other\n" {
			t.Errorf("became %q, %v", text, err)
		}
	})
}
