//go:build linux

package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// hands returns the tools of a new sandbox, the default one if spec is zero.
func hands(t testing.TB, spec engine.Spec, o agent.Options) (*engine.Sandbox, *agent.Tools) {
	t.Helper()
	return handsAt(t, testbox.Namespaces, spec, o)
}

func handsAt(t testing.TB, l testbox.Level, spec engine.Spec, o agent.Options) (*engine.Sandbox, *agent.Tools) {
	t.Helper()
	spec.Keep = true
	if o.Timeout == 0 {
		o.Timeout = time.Minute // a busy machine must not fail tests
	}
	box := l.Sandbox(t, spec)
	return box, toolsOf(t, box, o)
}

func toolsOf(t testing.TB, box *engine.Sandbox, o agent.Options) *agent.Tools {
	t.Helper()
	tools, err := agent.Bind(testbox.Within(t, time.Minute), box, o)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// say returns the answer of a tool.
func say[In any](t testing.TB, tool func(context.Context, In) (string, error), in In) string {
	t.Helper()
	text, err := tool(testbox.Within(t, time.Minute), in)
	if err != nil {
		t.Fatalf("%+v: %v", in, err)
	}
	return text
}

// fails checks that a tool fails with an error that contains want.
func fails[In any](t testing.TB, tool func(context.Context, In) (string, error), in In, want string) error {
	t.Helper()
	text, err := tool(testbox.Within(t, time.Minute), in)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%+v: %q, %v, want an error about %q", in, text, err, want)
	}
	return err
}

func same[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func TestShellTool(t *testing.T) {
	_, tools := hands(t, engine.Spec{Env: []string{"COLOUR=green"}}, agent.Options{Output: 4096})
	for _, c := range []struct {
		name string
		in   agent.ShellInput
		want string
	}{
		{"axio: echo", agent.ShellInput{Command: "echo hello"}, "hello"},
		{"axio: stderr is labelled", agent.ShellInput{Command: "echo oops >&2"}, "[stderr]\noops"},
		{"axio: exit code", agent.ShellInput{Command: "exit 42"}, "[exit code: 42]"},
		{"axio: exit code after output", agent.ShellInput{Command: "printf no-newline; exit 3"},
			"no-newline\n[exit code: 3]"},
		{"axio: a signal is an exit code", agent.ShellInput{Command: "kill -9 $$"}, "[exit code: 137]"},
		{"axio: timeout", agent.ShellInput{Command: "sleep 60", Timeout: 0.5}, "[timeout after 0.5s]"},
		{"axio: timeout keeps partial output", agent.ShellInput{Command: "echo begun; echo odd >&2; sleep 60", Timeout: 2},
			""},
		{"axio: stdin", agent.ShellInput{Command: "cat", Stdin: "to be read"}, "to be read"},
		{"axio: no stdin is the end of it", agent.ShellInput{Command: "cat; echo over"}, "over"},
		{"axio: environment of the Spec", agent.ShellInput{Command: "echo $COLOUR"}, "green"},
		{"axio: no output", agent.ShellInput{Command: "true"}, "(no output)"},
		{"axio: white space before stays, newlines after go", agent.ShellInput{Command: `printf '  \n\t indented  \n\n\n'`},
			"  \n\t indented  "},
		{"axio: exactly what was printed", agent.ShellInput{Command: "printf sandbox-ok"}, "sandbox-ok"},
		{"bytes that are no characters", agent.ShellInput{Command: `printf 'a\377b'`}, "a\uFFFDb"},
		{"half a character at the end", agent.ShellInput{Command: `printf 'a\303'`}, "a\uFFFD"},
		{"cwd is relative to the sandbox's",
			agent.ShellInput{Command: `mkdir -p "it's a/dir"; cd "it's a/dir" && basename "$PWD"`}, "dir"},
		{"cwd", agent.ShellInput{Command: `basename "$PWD"`, Cwd: "it's a/dir"}, "dir"},
		{"cwd absolute", agent.ShellInput{Command: "pwd", Cwd: "/usr"}, "/usr"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := say(t, tools.Shell, c.in)
			if c.want == "" {
				// The order of the two outputs is not defined.
				if !strings.Contains(got, "begun") || !strings.Contains(got, "[stderr]\nodd\n") ||
					!strings.HasSuffix(got, "\n[timeout after 2s]") {
					t.Errorf("got %q", got)
				}
				return
			}
			same(t, got, c.want)
		})
	}
	t.Run("endless output is bounded, and its end kept", func(t *testing.T) {
		got := say(t, tools.Shell, agent.ShellInput{Command: "echo first; seq 1 1000000; echo last; exit 1", Timeout: 60})
		if len(got) > 4200 || !strings.HasPrefix(got, "first\n1\n") || !strings.Contains(got, "...[truncated]\n") ||
			!strings.HasSuffix(got, "\n1000000\nlast\n[exit code: 1]") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	})
	t.Run("a timeout that is none", func(t *testing.T) {
		for _, s := range []float64{-1, 1e9} {
			err := fails(t, tools.Shell, agent.ShellInput{Command: "true", Timeout: s}, "timeout")
			same(t, errors.Is(err, engine.ErrInvalid), true)
		}
	})
	t.Run("cwd that is not there", func(t *testing.T) {
		err := fails(t, tools.Shell, agent.ShellInput{Command: "true", Cwd: "nowhere"}, `cwd "nowhere"`)
		same(t, errors.Is(err, os.ErrNotExist), true)
	})
	t.Run("a command that no program can be given", func(t *testing.T) {
		fails(t, tools.Shell, agent.ShellInput{}, "no command")
		fails(t, tools.Shell, agent.ShellInput{Command: strings.Repeat("#", 128<<10)}, "write it to a file")
		same(t, say(t, tools.Shell, agent.ShellInput{Command: "echo long " + strings.Repeat("#", 127<<10)}), "long")
	})
	t.Run("a context that ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		text, err := tools.ShellStream(ctx, agent.ShellInput{Command: "echo ready; sleep 60", Timeout: 60},
			func(agent.Stream, string) { cancel() })
		same(t, text, "ready\n[canceled]")
		same(t, errors.Is(err, context.Canceled), true)
		same(t, say(t, tools.Shell, agent.ShellInput{Command: "echo on"}), "on")
	})
}

func TestShellToolStreams(t *testing.T) {
	dir := testbox.Workspace(t)
	_, tools := hands(t, engine.Spec{FS: engine.FS{Workspace: dir}}, agent.Options{})
	t.Run("axio: order", func(t *testing.T) {
		// The command goes on when its last word has arrived, so there is one order.
		var told []string
		got := say(t, func(ctx context.Context, in agent.ShellInput) (string, error) {
			return tools.ShellStream(ctx, in, func(from agent.Stream, text string) {
				told = append(told, string(from)+": "+text)
				if err := os.WriteFile(filepath.Join(dir, "heard-"+strings.TrimSpace(text)), nil, 0o600); err != nil {
					t.Error(err)
				}
			})
		}, agent.ShellInput{Timeout: 60, Command: `
			heard() { until [ -e heard-$1 ]; do :; done; }
			echo one; heard one; echo two >&2; heard two; echo three; heard three; exit 4`})
		same(t, strings.Join(told, ""), "stdout: one\nstderr: two\nstdout: three\n")
		same(t, got, "one\n[stderr]\ntwo\n[stdout]\nthree\n[exit code: 4]")
	})
	t.Run("axio: a slow receiver does not delay a timeout", func(t *testing.T) {
		release := make(chan struct{})
		var once sync.Once
		defer once.Do(func() { close(release) })
		entered := make(chan struct{}, 100)
		begun := time.Now()
		text, err := tools.ShellStream(testbox.Within(t, time.Minute),
			agent.ShellInput{Command: "echo begun; sleep 60", Timeout: 2}, func(agent.Stream, string) {
				entered <- struct{}{}
				<-release
			})
		took := time.Since(begun)
		same(t, text, "begun\n[timeout after 2s]")
		if err != nil || took > 30*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		same(t, len(entered), 1)
	})
}

func TestTimeoutLeavesNothing(t *testing.T) { testbox.EachLevel(t, testTimeoutLeavesNothing) }

func testTimeoutLeavesNothing(t *testing.T, l testbox.Level) {
	_, tools := handsAt(t, l, engine.Spec{}, agent.Options{})
	n := 700
	for name, script := range testbox.LeaveBehind {
		n++
		mark := testbox.Marker(n)
		t.Run(""+name, func(t *testing.T) {
			t.Parallel() // so a timeout has others to end by mistake
			l.SkipUntracked(t, name)
			if name == "setsid" || name == "double fork" {
				testenv.Need(t, testenv.Program("setsid"))
			}
			in := agent.ShellInput{Command: strings.ReplaceAll(script, "%[1]s", mark) + "; sleep " + mark, Timeout: 1}
			same(t, strings.HasSuffix(say(t, tools.Shell, in), "[timeout after 1s]"), true)
			testbox.Gone(t, mark)
			same(t, say(t, tools.Shell, agent.ShellInput{Command: "echo still here"}), "still here")
		})
	}
}

func TestSandboxEnds(t *testing.T) {
	box, tools := hands(t, engine.Spec{}, agent.Options{})
	t.Run("axio: while a command runs", func(t *testing.T) {
		text, err := tools.ShellStream(testbox.Within(t, time.Minute),
			agent.ShellInput{Command: "echo begun; sleep 60", Timeout: 60}, func(agent.Stream, string) {
				go func() { _ = box.Close() }() // closed again, and looked at, when the test ends
			})
		same(t, text, "begun\n[sandbox lost]")
		same(t, errors.Is(err, engine.ErrClosed), true)
	})
	t.Run("axio: before", func(t *testing.T) {
		<-box.Done()
		for _, err := range []error{
			fails(t, tools.Shell, agent.ShellInput{Command: "true"}, "the sandbox has ended"),
			fails(t, tools.ReadFile, agent.ReadInput{Path: "x"}, "the sandbox has ended"),
			fails(t, tools.WriteFile, agent.WriteInput{Path: "x"}, "the sandbox has ended"),
			fails(t, tools.ListFiles, agent.ListInput{}, "the sandbox has ended"),
			fails(t, tools.RunPython, agent.PythonInput{Code: "1"}, ""),
		} {
			if !errors.Is(err, engine.ErrClosed) && !errors.Is(err, engine.ErrUnsupported) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestToolsKeepToTheLimits(t *testing.T) {
	testenv.NoRace(t)
	dir := testbox.Workspace(t)
	given := testenv.Dir(t)
	if err := os.WriteFile(given+"/note", []byte("from the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(given+"/note", 0o666); err != nil { // so that only the mount says no
		t.Fatal(err)
	}
	spec := engine.Spec{
		User:   &engine.User{UID: 65534, GID: 65534},
		Limits: engine.Limits{Files: 512, Pids: 128},
		FS: engine.FS{Workspace: dir, Mounts: []engine.Mount{
			{Type: engine.MountBind, Source: given, Target: "/given", ReadOnly: true},
			{Type: engine.MountTmpfs, Target: "/scratch", Size: 16 * engine.MiB},
			{Type: engine.MountTmpfs, Target: "/dev/shm", Size: 32 * engine.MiB},
		}},
	}
	_, tools := hands(t, spec, agent.Options{})
	sh := func(command string) string { return say(t, tools.Shell, agent.ShellInput{Command: command}) }
	t.Run("axio: a directory of the host", func(t *testing.T) {
		same(t, say(t, tools.ReadFile, agent.ReadInput{Path: "/given/note"}), "from the host\n")
		fails(t, tools.WriteFile, agent.WriteInput{Path: "/given/note", Content: "x"}, "read-only in this sandbox")
		fails(t, tools.WriteFile, agent.WriteInput{Path: "/given/new", Content: "x"}, "read-only in this sandbox")
	})
	t.Run("axio: user", func(t *testing.T) { same(t, sh("id -u"), "65534") })
	t.Run("axio: descriptors", func(t *testing.T) { same(t, sh("ulimit -n"), "512") })
	t.Run("axio: processes", func(t *testing.T) {
		got := sh(`mkfifo /tmp/end; exec 9<>/tmp/end
			for i in {1..300}; do read -r -u 9 & done 2>&1 | head -c 100
			for i in {1..300}; do echo; done >&9; exec 9>&-`)
		if !strings.Contains(got, "fork") {
			t.Errorf("300 processes with a limit of 128: %s", got)
		}
	})
	t.Run("axio: a tmpfs", func(t *testing.T) {
		same(t, sh("stat -f -c %T /scratch"), "tmpfs")
		same(t, say(t, tools.WriteFile, agent.WriteInput{Path: "/scratch/x", Content: "x"}), "Wrote 1 bytes to /scratch/x")
	})
	t.Run("axio, OpenChia: /etc is not writable", func(t *testing.T) {
		fails(t, tools.WriteFile, agent.WriteInput{Path: "/etc/new", Content: "x"}, "read-only in this sandbox")
	})
	t.Run("axio: shared memory", func(t *testing.T) {
		n, err := strconv.Atoi(sh("stat -f -c '%b %S' /dev/shm | { read b s; echo $((b*s>>20)); }"))
		if err != nil || n < 30 {
			t.Errorf("%d MiB, %v", n, err)
		}
	})
	t.Run("axio: the workspace outlives the sandbox", func(t *testing.T) {
		say(t, tools.WriteFile, agent.WriteInput{Path: "kept", Content: "here"})
		_, again := hands(t, spec, agent.Options{})
		same(t, say(t, again.ReadFile, agent.ReadInput{Path: "kept"}), "here")
	})
}
