//go:build linux

package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestShells(t *testing.T) {
	testenv.NoRace(t)
	_, tools := hands(t, engine.Spec{}, agent.Options{})
	t.Run("axio: the order of preference", func(t *testing.T) {
		at := -1
		order := []string{"bash", "sh", "zsh", "dash"}
		for _, s := range tools.Shells() {
			i := at + 1
			for i < len(order) && order[i] != s {
				i++
			}
			if i == len(order) {
				t.Fatalf("%v, want in the order %v", tools.Shells(), order)
			}
			at = i
		}
		first := say(t, tools.Shell, agent.ShellInput{Command: "readlink /proc/$$/exe; :"})
		if tools.Shells()[0] == "bash" && filepath.Base(first) != "bash" {
			t.Errorf("the default is %s", first)
		}
	})
	t.Run("axio: a shell by its name", func(t *testing.T) {
		same(t, say(t, tools.Shell, agent.ShellInput{Command: `echo "$0"`, Shell: "sh"}),
			say(t, tools.Shell, agent.ShellInput{Command: "command -v sh"}))
	})
	t.Run("axio: an unknown shell is refused and not executed", func(t *testing.T) {
		for _, name := range []string{"fish", "/bin/sh", "sh -c 'echo x'", "python3", "../sh"} {
			fails(t, tools.Shell, agent.ShellInput{Command: "touch executed", Shell: name}, "the sandbox has")
		}
		same(t, say(t, tools.ListFiles, agent.ListInput{}), "(empty directory)")
	})
	t.Run("axio: no start-up file is read", func(t *testing.T) {
		_, noisy := hands(t, engine.Spec{Env: []string{"BASH_ENV=/tmp/noise", "ENV=/tmp/noise", "HOME=/tmp"}},
			agent.Options{})
		say(t, noisy.WriteFile, agent.WriteInput{Path: "/tmp/.profile", Content: "echo noise"})
		say(t, noisy.WriteFile, agent.WriteInput{Path: "/tmp/noise", Content: "echo noise"})
		same(t, say(t, noisy.ListFiles, agent.ListInput{}), "(empty directory)")
		same(t, say(t, noisy.Shell, agent.ShellInput{Command: "echo quiet", Shell: "sh"}), "quiet")
	})
}

// busyboxRoot makes a root file system of busybox alone, with links for the applets.
func busyboxRoot(t testing.TB, applets ...string) string {
	t.Helper()
	const busybox = "/usr/bin/busybox"
	testenv.Need(t, testenv.File(busybox))
	root := testenv.Dir(t)
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range strings.Fields("bin dev etc proc tmp workspace") {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(root+"/bin/busybox", program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, a := range applets {
		if err := os.Symlink("busybox", root+"/bin/"+a); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var applets = strings.Fields("sh head cat mkdir mv rm chmod stat readlink sleep seq echo ls mkfifo ln touch id")

func TestBind(t *testing.T) {
	testenv.NoRace(t)
	t.Run("axio: sh alone", func(t *testing.T) {
		_, tools := hands(t, engine.Spec{FS: engine.FS{Root: busyboxRoot(t, applets...)}}, agent.Options{})
		same(t, strings.Join(tools.Shells(), " "), "sh")
		same(t, say(t, tools.Shell, agent.ShellInput{Command: "echo $0"}), "/bin/sh")
		err := fails(t, tools.RunPython, agent.PythonInput{Code: "1"}, "python3 is not in the PATH")
		same(t, errors.Is(err, engine.ErrUnsupported), true)
	})
	t.Run("axio: no shell", func(t *testing.T) {
		box := testbox.Sandbox(t, engine.Spec{Keep: true, FS: engine.FS{Root: busyboxRoot(t, "cat")}})
		_, err := agent.Bind(t.Context(), box, agent.Options{})
		if !errors.Is(err, engine.ErrUnsupported) || !strings.Contains(err.Error(), "none of bash, sh, zsh, dash") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("axio: canceled", func(t *testing.T) {
		box := testbox.Sandbox(t, engine.Spec{Keep: true})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := agent.Bind(ctx, box, agent.Options{})
		same(t, errors.Is(err, context.Canceled), true)
		same(t, testbox.Output(t, box, "echo usable"), "usable")
	})
	t.Run("axio: the sandbox is gone", func(t *testing.T) {
		box := testbox.Sandbox(t, engine.Spec{Keep: true})
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := agent.Bind(t.Context(), box, agent.Options{})
		same(t, errors.Is(err, engine.ErrClosed), true)
	})
	t.Run("a sandbox without Keep", func(t *testing.T) {
		_, err := agent.Bind(t.Context(), testbox.Sandbox(t, engine.Spec{}), agent.Options{})
		if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "Spec.Keep") {
			t.Errorf("got %v", err)
		}
	})
}

func TestPython(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Program("python3"))
	_, tools := hands(t, engine.Spec{}, agent.Options{})
	if strings.Contains(say(t, tools.Shell, agent.ShellInput{Command: "command -v python3 || :"}), "no output") {
		t.Skip("python3 is not among the system's programs")
	}
	for _, c := range []struct {
		name string
		in   agent.PythonInput
		want string
	}{
		{"axio: 2+2", agent.PythonInput{Code: "print(2+2)"}, "4"},
		{"axio: stdin", agent.PythonInput{Code: "import sys; print(sys.stdin.read().upper())", Stdin: "shout"}, "SHOUT"},
		{"axio: exit code", agent.PythonInput{Code: "raise SystemExit(3)"}, "[exit code: 3]"},
		{"no code", agent.PythonInput{}, "(no output)"},
		{"nothing to read", agent.PythonInput{Code: "print(repr(input() if 0 else open(0).read()))"}, "''"},
		{"quotes and percent signs", agent.PythonInput{Code: `print("""it's %s \\n""")`}, `it's %s \n`},
		{"not ASCII", agent.PythonInput{Code: "print('žluťoučký', len('ž'))"}, "žluťoučký 1"},
		{"long", agent.PythonInput{Code: "s = '" + strings.Repeat("ž", 300_000) + "'\nprint(len(s))"}, "300000"},
		{"timeout keeps what was printed", agent.PythonInput{Code: "import time\nprint('begun')\ntime.sleep(60)",
			Timeout: 4}, "begun\n[timeout after 4s]"},
	} {
		t.Run(c.name, func(t *testing.T) { same(t, say(t, tools.RunPython, c.in), c.want) })
	}
	t.Run("cwd, and modules there", func(t *testing.T) {
		say(t, tools.WriteFile, agent.WriteInput{Path: "lib/mine.py", Content: "answer = 42\n"})
		same(t, say(t, tools.RunPython, agent.PythonInput{Code: "import mine; print(mine.answer)", Cwd: "lib"}), "42")
	})
	t.Run("tracebacks show the code", func(t *testing.T) {
		got := say(t, tools.RunPython, agent.PythonInput{Code: "x = 1\nx / 0\n"})
		if !strings.Contains(got, "line 2") || !strings.Contains(got, "x / 0") ||
			!strings.HasSuffix(got, "ZeroDivisionError: division by zero\n[exit code: 1]") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a string of many lines is as it was written", func(t *testing.T) {
		same(t, say(t, tools.RunPython, agent.PythonInput{Code: "print('''a\n  b\n\tc''')"}), "a\n  b\n\tc")
	})
	t.Run("nothing is left of it", func(t *testing.T) {
		same(t, say(t, tools.Shell, agent.ShellInput{Command: "ls $TMPDIR | grep ^code-"}), "[exit code: 1]")
	})
	t.Run("too long, and not text", func(t *testing.T) {
		fails(t, tools.RunPython, agent.PythonInput{Code: strings.Repeat("#", 1<<20+1)}, "write it to a file")
		fails(t, tools.RunPython, agent.PythonInput{Code: "print('\x00')"}, "NUL")
	})
}
