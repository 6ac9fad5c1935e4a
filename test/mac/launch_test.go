//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// The command line is the profile, its parameters, and a shell that becomes the program. No path of the caller is in
// the profile: a name could end a string and continue as a rule.
func TestCommandLine(t *testing.T) {
	rec := record(t)
	ws, data := filepath.Join(dir(t), `w")(allow default)("`), filepath.Join(dir(t), "data=1")
	for _, d := range []string{ws, data} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	box := start(t, open(t, rec.host), engine.Spec{Keep: true,
		FS: engine.FS{Workspace: ws, Mounts: []engine.Mount{{Type: engine.MountBind, Source: data, Target: data,
			ReadOnly: true}}}})
	testbox.Run(t, box, "echo", "an argument")
	argv := rec.argv(t)
	if len(argv) < 3 || argv[0] != "-p" || !strings.HasPrefix(argv[1], "(version 1)") {
		t.Fatalf("it begins with %.60q", argv)
	}
	profile := argv[1]
	defined := make(map[string]string)
	rest := argv[2:]
	for len(rest) > 1 && rest[0] == "-D" {
		key, value, ok := strings.Cut(rest[1], "=")
		if _, twice := defined[key]; !ok || key == "" || twice {
			t.Errorf("-D %q", rest[1])
		}
		if !strings.Contains(profile, `(param "`+key+`")`) {
			t.Errorf("%s is not asked for", key)
		}
		defined[key] = value
		rest = rest[2:]
	}
	var private string
	for _, kv := range box.Plan().Env {
		if d, ok := strings.CutPrefix(kv, "TMPDIR="); ok {
			private = filepath.Dir(d)
		}
	}
	values := make([]string, 0, len(defined))
	for _, v := range defined {
		values = append(values, v)
	}
	for _, want := range []string{private + "/tmp", private + "/workspace", ws, data} {
		if !slices.Contains(values, want) {
			t.Errorf("no -D has %q: %q", want, values)
		}
	}
	if want := []string{"--", "/bin/bash", "-p", "-c"}; len(rest) < 8 || !slices.Equal(rest[:4], want) {
		t.Fatalf("then comes %.100q, want %q", rest, want)
	}
	tail := rest[5:] // the script's name, env(1) and what it is not to pass on
	if n := len(tail); tail[0] != "bash" || tail[1] != "/usr/bin/env" || !strings.HasSuffix(tail[n-2], "/echo") ||
		tail[n-1] != "an argument" {
		t.Errorf("and at last %q", tail)
	}
	for _, path := range []string{private, ws, data, filepath.Dir(ws), "allow default)(", "data=1"} {
		if strings.Contains(profile, path) || strings.Contains(rest[4], path) {
			t.Errorf("%q is in the profile, or in the script", path)
		}
	}
}

// see returns the descriptors that a program has.
const see = `
import os, stat, sys
for fd in range(1024):
    try: m = os.fstat(fd).st_mode
    except OSError: continue
    kinds = {"pipe": stat.S_ISFIFO, "socket": stat.S_ISSOCK, "device": stat.S_ISCHR, "file": stat.S_ISREG, "directory": stat.S_ISDIR}
    sys.stdout.write("%d %s\n" % (fd, [k for k in kinds if kinds[k](m)][0]))
`

// A program has the standard streams and, with tools, their channel. It does not inherit what the host has opened for
// its own children (CVE-2024-21626).
func TestDescriptors(t *testing.T) {
	needs(t, "python3")
	var leaks []int
	for _, fd := range []int{20, 300} { // of one digit, and above what shells close by number
		secret, err := os.Open(dir(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := dup(int(secret.Fd()), fd); err != nil { // without FD_CLOEXEC
			t.Fatal(err)
		}
		leaks = append(leaks, fd)
		if err := secret.Close(); err != nil {
			t.Error(err)
		}
	}
	defer func() {
		for _, fd := range leaks {
			if err := syscall.Close(fd); err != nil {
				t.Error(err)
			}
		}
	}()
	box := sandbox(t, engine.Spec{Keep: true})
	for _, c := range []struct {
		name  string
		tools *broker.Set
		want  string
	}{
		{"none", nil, "0 device\n1 pipe\n2 pipe\n"},
		{"tools", testbox.Adders(), "0 device\n1 pipe\n2 pipe\n3 socket\n"},
	} {
		for _, whole := range []bool{true, false} {
			cmd := box.CommandContext(testbox.Within(t, limit), "python3", "-c", see)
			cmd.Tools = c.tools
			var res *engine.Result
			var err error
			if whole {
				res, err = cmd.Run()
			} else if err = cmd.Start(); err == nil {
				res, err = cmd.Wait()
			}
			if err != nil || string(res.Stdout) != c.want {
				t.Errorf("%s: %+v, %v; want\n%s", c.name, res, err, c.want)
			}
		}
	}
}

// printEnv is a program that prints its environment as JSON.
const printEnv = "import json, os; print(json.dumps({os.fsdecode(k): os.fsdecode(v) for k, v in os.environb.items()}))"

func environment(t *testing.T, box *engine.Sandbox, env []string) (got map[string]string) {
	t.Helper()
	cmd := box.CommandContext(testbox.Within(t, limit), "python3", "-c", printEnv)
	cmd.ExtraEnv = env
	res, err := cmd.Run()
	if err != nil || res.Outcome != engine.OutcomeOK {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := json.Unmarshal(res.Stdout, &got); err != nil {
		t.Fatalf("%v in %s", err, res.Stdout)
	}
	return got
}

// The environment is the plan's and the command's. "_" is added by bash, LC_CTYPE by Python, and the last by Apple's
// frameworks.
func TestEnvironment(t *testing.T) {
	needs(t, "python3")
	t.Setenv("TEGMEN_TEST_LEAK", "x")
	box := start(t, open(t, unseen(t)), engine.Spec{Keep: true, Env: []string{"A=of the sandbox", "SPEC=1"}})
	own := []string{
		"A=b=c", "EMPTY=", "SPACE= two  words ", "NEWLINE=a\n" +
			"b", "QUOTE='\"$(id)`id`", "UNI=Grüße", "PATH=/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin",
		"BASH_ENV=/nonesuch", "ENV=/nonesuch", "CDPATH=/", "with-dash=1", "with.dot=1",
	}
	got, want := environment(t, box, own), make(map[string]string)
	for _, kv := range slices.Concat(box.Plan().Env, own) {
		name, value, _ := strings.Cut(kv, "=")
		want[name] = value
	}
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s is %q (%v), want %q", name, v, ok, value)
		}
	}
	for name, value := range got {
		if _, ok := want[name]; !ok && !slices.Contains([]string{"_", "LC_CTYPE", "__CF_USER_TEXT_ENCODING"}, name) {
			t.Errorf("besides, %s=%s", name, value)
		}
	}
}

// Variables that configure a shell neither affect the launcher nor change on the way.
func TestEnvironmentOfShells(t *testing.T) {
	needs(t, "python3")
	box := start(t, open(t, unseen(t)), engine.Spec{Keep: true})
	for _, kv := range []string{
		"PWD=/p", "OLDPWD=/o", "SHLVL=7", "SHELLOPTS=xtrace", "BASHOPTS=extdebug", "IFS=x", "PS4=$(id)", "POSIXLY_CORRECT=1",
		"BASH_FUNC_exec%%=() { echo shadowed; }", "BASH_FUNC_ulimit%%=() { :; }", "OPTIND=5", "PPID=1", "UID=0",
		"BASH_XTRACEFD=2", "TMOUT=1", "HISTFILE=/h",
		"REPLY=r", "OPTERR=0", "LINENO=5", "RANDOM=5", "SECONDS=5", "BASHPID=5", "GLOBIGNORE=*", "LD_LIBRARY_PATH=/nonesuch",
		"LC_ALL=" + strings.Repeat("x", 5000),
	} {
		name, value, _ := strings.Cut(kv, "=")
		t.Run(name, func(t *testing.T) {
			if got, ok := environment(t, box, []string{kv})[name]; !ok || got != value {
				t.Errorf("it is %q (%v), want %q", got, ok, value)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	needs(t, "python3")
	args := []string{
		"", " ", "two words", "'", `"`, `\`, `\n`, "a\nb", "\n", "\t", "-", "--", "-p", "-D", "-Dx=y", "$HOME", "$(id)", "`id`", "*", "?", "~", "!x", "#", ";", "&", "|",
		">x", "a=b", "Grüße", "日本語", "\x01", "\xff\xfe", "%s", "(allow default)", strings.Repeat("x", 100_000), "",
	}
	box := sandbox(t, engine.Spec{})
	res := testbox.Run(t, box, "python3", append([]string{"-c", `
import os, sys
sys.stdout.buffer.write(b"\0".join(os.fsencode(a) for a in sys.argv[1:]))`}, args...)...)
	if got := bytes.Split(res.Stdout, []byte{0}); res.Outcome != engine.OutcomeOK || len(got) != len(args) {
		t.Fatalf("%s, %d arguments, want %d; stderr %s", res.Outcome, len(got), len(args), res.Stderr)
	} else {
		for i, a := range args {
			if string(got[i]) != a {
				t.Errorf("argument %d is %.60q, want %.60q", i, got[i], a)
			}
		}
	}
}

// A program may have any name.
func TestNamesOfPrograms(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	for _, name := range []string{"two words", "-p", "--", "-c", "a=b", `q"`, "exec", "ulimit", "$HOME", "日本"} {
		path := filepath.Join(box.Plan().Dir, name)
		script(t, path, "echo ran")
		for _, as := range []string{"./" + name, path} {
			if got := output(t, box, as); got != "ran\n" {
				t.Errorf("%q: %q", as, got)
			}
		}
		cmd := box.CommandContext(testbox.Within(t, limit), name) // found by a relative PATH
		cmd.ExtraEnv = []string{"PATH=.:/usr/bin:/bin"}
		if res, err := cmd.Run(); err != nil || string(res.Stdout) != "ran\n" {
			t.Errorf("%q in PATH: %+v, %v", name, res, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	for _, code := range []int{0, 1, 2, 3, 63, 64, 65, 66, 71, 77, 100, 124, 125, 126, 127, 128, 129, 137, 143, 200, 254,
		255} {
		res := testbox.Run(t, box, "sh", "-c", fmt.Sprintf("exit %d", code))
		want := engine.OutcomeExit
		if code == 0 {
			want = engine.OutcomeOK
		}
		if res.ExitCode != code || res.Outcome != want || res.Signal != 0 || len(res.Stderr) > 0 {
			t.Errorf("exit %d: %s %d, signal %d, stderr %s", code, res.Outcome, res.ExitCode, res.Signal, res.Stderr)
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGABRT, syscall.SIGKILL,
		syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGUSR1} {
		res := testbox.Run(t, box, "sh", "-c", fmt.Sprintf("kill -%d $$", int(sig)))
		if res.Outcome != engine.OutcomeSignal || res.Signal != sig || res.ExitCode != 128+int(sig) {
			t.Errorf("%s: %s, signal %s, code %d", sig, res.Outcome, res.Signal, res.ExitCode)
		}
	}
}

// What the caller ignores, as nohup has it do, commands do not.
func TestExitCodesUnderNohup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `trap "" HUP INT; exec "$0" -test.run "^TestExitCodes$"`, self).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
