package bootstrap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/bootstrap"
	"github.com/tegmen-dev/tegmen/internal/fakehost"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// shEach runs a test in each shell there is, with /proc and without. The shell of
// macOS, which has none, is bash in POSIX mode; TEGMEN_TEST_ALL has others do without,
// too.
func shEach(t *testing.T, test func(t *testing.T, shell string)) {
	shells := []string{"dash", "bash", "busybox sh", shNoProc + "bash --posix"}
	if os.Getenv("TEGMEN_TEST_ALL") != "" {
		shells = append(shells, shNoProc+"dash", shNoProc+"busybox sh")
	}
	for _, shell := range shells {
		t.Run(strings.ReplaceAll(shell, " ", "-"), func(t *testing.T) {
			t.Parallel()
			program, noProc := strings.CutPrefix(shell, shNoProc)
			testenv.Need(t, testenv.Program(strings.Fields(program)[0]))
			switch {
			case !noProc:
				testenv.Need(t, testenv.File("/proc/self/fd"))
			case runtime.GOOS == "linux":
				testenv.Need(t, testenv.UserNS, testenv.Program("unshare"), testenv.Program("mount"))
			}
			test(t, shell)
		})
	}
}

// stdinUntil gives a command a standard input that ends with that.
func stdinUntil(t testing.TB, cmd *exec.Cmd, that <-chan struct{}) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = in
	go func() {
		<-that
		out.Close()
	}()
	t.Cleanup(func() { in.Close() })
}

type shResult struct {
	stdout, stderr string
	status         int
	host           *fakehost.Host
}

var shTools = []bootstrap.Tool{
	{Name: "add", Schema: json.RawMessage(`{"properties":{"a":{"type":"number"},"b":{"type":"number"}}}`)},
	{Name: "echo", Schema: json.RawMessage(`{"properties":{"name":{"type":["string","null"]},"any":{}}}`)},
	{Name: "say", Schema: json.RawMessage(`{"properties":{"text":{"type":"string"}}}`)},
	{Name: "db.query"}, {Name: "fail"}, {Name: "null"}, {Name: "missing"},
	{Name: "bytes", Output: json.RawMessage(`{"type":["null","string"],"contentEncoding":"base64"}`)},
}

// shRun runs a script to its end.
func shRun(t testing.TB, s bootstrap.Script, tools map[string]fakehost.Tool, change func(*exec.Cmd, *fakehost.Host)) shResult {
	t.Helper()
	if s.Tools == nil {
		s.Tools = shTools
	}
	conn, host := fakehost.New(t, tools)
	defer conn.Close()
	host.Job = map[string]any{"protocol": 1, "tools": []string{`"id":"`}}
	noProc := strings.HasPrefix(s.Shell, shNoProc)
	if noProc {
		s.Dir, s.Shell = filepath.Join(t.TempDir(), "it's"), s.Shell[len(shNoProc):]
	}
	l := bootstrap.Shell(s)
	if noProc {
		l = shHideProc(t, l, s.Dir)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.Argv[0], l.Argv[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(append(os.Environ(), l.Env...), "TEGMEN_FD=3", "TEGMEN_TOKEN=secret")
	cmd.ExtraFiles = []*os.File{conn}
	for i, text := range l.Files {
		name := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if change != nil {
		change(cmd, host)
	}
	host.Serve(t)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	conn.Close()
	<-host.Done()
	return shResult{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), host}
}

// Each script is run, and what it prints and its status are compared.
func TestShellCalls(t *testing.T) {
	testenv.NoRace(t)
	tests := []struct {
		name, source   string
		stdout, stderr string
		status         int
	}{
		{name: "positional", source: `add 1 2`, stdout: "3\n"},
		{name: "named", source: `add b=2 a=-1.5e0`, stdout: "0.5\n"},
		{name: "JSON", source: `add '{"a": 1, "b": 2}'`, stdout: "3\n"},
		{name: "JSON of many lines", source: "add '{\n\"a\": 1,\n\n\"b\": 2}\n'", stdout: "3\n"},
		{name: "standard input", source: "add - <<E\n{\"a\": 4,\n\"b\": 2}\nE", stdout: "6\n"},
		{name: "pipeline", source: `echo '{"a": 4, "b": 2}' | add - | cat`, stdout: "6\n"},
		{name: "substitution", source: `x=$(add 1 2); y=$(add "$x" "$(add 3 4)"); printf '%s\n' "$y"`, stdout: "10\n"},
		{name: "text by schema", source: `echo name=1 any=1`, stdout: `{"name":"1","any":1}` + "\n"},
		{name: "JSON forced", source: `echo name:=null any:='"1"'`, stdout: `{"name":null,"any":"1"}` + "\n"},
		{name: "what looks like JSON", source: `for x in true null 0 -0.1E-2 '[1, 2]' '{"a":[]}' '"x"'; do echo any="$x"; done`,
			stdout: `{"any":true}` + "\n" + `{"any":null}` + "\n" + `{"any":0}` + "\n" + `{"any":-0.1E-2}` + "\n" + `{"any":[1,2]}` + "\n" + `{"any":{"a":[]}}` + "\n" + `{"any":"x"}` + "\n"},
		{name: "an object with quotes in a string", source: `echo '{"any":"a\"b\\"}'; say text='{"a":"\n"}'`, stdout: `{"any":"a\"b\\"}` + "\n" + `{"a":"\n"}` + "\n"},
		{name: "what does not", source: `for x in '' 007 1. .5 1.2.3 1e - -x 1-2 +1 True '{x' '*'; do echo any="$x"; done | tr -d '\n'`,
			stdout: `{"any":""}{"any":"007"}{"any":"1."}{"any":".5"}{"any":"1.2.3"}{"any":"1e"}{"any":"-"}{"any":"-x"}{"any":"1-2"}{"any":"+1"}{"any":"True"}{"any":"{x"}{"any":"*"}`},
		{name: "text with an equals sign", source: `say "select a from t where b=1"; say text=a=b=c`, stdout: "select a from t where b=1\na=b=c\n"},
		{name: "no arguments", source: `null`, stdout: "null\n"},
		{name: "namespace", source: `db_query sql=x; tool db.query sql=y`, stdout: `["db",{"sql":"x"}]` + "\n" + `["db",{"sql":"y"}]` + "\n"},
		{name: "bytes", source: `set -- $(bytes | od -An -tx1); printf "%s." "$@"`, stdout: "61.00.62.ff."},
		{name: "a tool's error", source: `fail; printf '%s' $?`, stdout: "1", stderr: "fail: quota: no \"more\",\"data\":{\"type\":\"x\"\nfor Bj\u00f6rn\\\n"},
		{name: "the caller's error", source: `add a=x; printf '%s' $?`, stdout: "2",
			stderr: "add: invalid_params: json: cannot unmarshal string into Go struct field .A of type float64\n"},
		{name: "too many arguments", source: `add 1 2 3`, stderr: "add: invalid_params: too many arguments\n", status: 2},
		{name: "not JSON", source: `echo any:=nul`, stderr: "echo: parse_error: not JSON\n", status: 2},
		{name: "not JSON on two lines", source: "echo any:='\"a\nb\"'", stderr: "echo: parse_error: not JSON\n", status: 2},
		{name: "not UTF-8", source: `echo "any=$(printf '\377')"`, stderr: "echo: parse_error: not JSON\n", status: 2},
		{name: "JSON that tells another id", source: `echo any:='1}},"id":"x","a":{"b":{"c":1'`, stdout: `{"any":1}` + "\n"},
		{name: "no such tool", source: `tool nope 1`, stderr: "nope: not_found: no such tool\n", status: 2},
		{name: "no such tool on the host", source: `missing`, stderr: "missing: not_found: no tool \"missing\"\n", status: 2},
		{name: "no name", source: `tool`, stderr: "tool: usage: tool NAME [ARGUMENT...]\n", status: 2},
		{name: "exit", source: "exit 7", status: 7},
		{name: "return", source: "return 8; printf no", status: 8},
		{name: "last command", source: "(exit 9)", status: 9},
		{name: "set -e", source: "set -eu\nadd 1 2\nfail x=1 2>/dev/null\nprintf no", stdout: "3\n", status: 1},
		{name: "set -e in an if", source: "set -e\nif fail 2>/dev/null; then printf no; else printf '%s' $?; fi", stdout: "1"},
		{name: "the script's own settings", source: "set -efuC\nIFS=1.,{}\nadd 11 2\nsay 'a\\b'\nset +f\nunset IFS\nadd 1 3\nadd '{\n\"a\":1,\"b\":1}'\nset -- a b\nprintf '%s' $#",
			stdout: "13\na\\b\n4\n2\n2"},
		{name: "arguments and variables", source: `printf '%s|' "$#" "$1" "$2" "$text" "$data" "$quote"`, stdout: "2|x y|*|a\nb|[1, \"2\"]|'\\''\"$HOME|"},
		{name: "environment", source: `printf '%s' "${TEGMEN_TOKEN-none} ${TEGMEN_FD-none}"`, stdout: "none none"},
		{name: "a script among the children", source: "sh -c '. \"$TEGMEN_TOOLS\"; add 1 2'; add 2 2", stdout: "3\n4\n"},
		{name: "a program by the name", source: `command echo any`, stdout: "any\n"},
	}
	shEach(t, func(t *testing.T, shell string) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				r := shRun(t, bootstrap.Script{Shell: shell, Source: test.source, Args: []string{"x y", "*"}, Vars: map[string]json.RawMessage{
					"text": json.RawMessage(`"a\nb"`), "data": json.RawMessage(`[1, "2"]`), "quote": json.RawMessage(`"'\\''\"$HOME"`), "no-name": json.RawMessage(`1`),
				}}, fakehost.Tools(), nil)
				if r.stdout != test.stdout || r.stderr != test.stderr || r.status != test.status {
					t.Errorf("got  %q %q %d\nwant %q %q %d", r.stdout, r.stderr, r.status, test.stdout, test.stderr, test.status)
				}
			})
		}
	})
}

func TestShellResult(t *testing.T) {
	testenv.NoRace(t)
	tests := []struct{ name, source, want, stderr string }{
		{"JSON", `result '{"a": 1}'`, `{"value":{"a":1}}`, ""},
		{"text", `result -t '{"a": 1}'`, `{"value":"{\"a\": 1}"}`, ""},
		{"standard input", "result - <<E\n[1,\n2]\nE", `{"value":[1,2]}`, ""},
		{"not JSON", `result nope || { printf '%s' $? >&2; result 1; }`, `{"value":1}`, "result: parse_error: not JSON\n1"},
		{"twice", `result 1; result 2 || printf '%s' $? >&2`, `{"value":1}`, "result: completed: the run already has its result\n1"},
		{"nothing", `result || { printf '%s' $? >&2; result 1; }`, `{"value":1}`, "result: usage: result JSON, result -, or result -t TEXT\n2"},
		{"by a child", `sh -c '. "$TEGMEN_TOOLS"; result 3'`, `{"value":3}`, ""},
	}
	shEach(t, func(t *testing.T, shell string) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				r := shRun(t, bootstrap.Script{Shell: shell, Source: test.source}, nil, nil)
				if len(r.host.Results()) == 0 {
					t.Fatalf("no result: %q", r.stderr)
				}
				var got bytes.Buffer
				if err := json.Compact(&got, r.host.Results()[0]); err != nil || got.String() != test.want || r.stderr != test.stderr {
					t.Errorf("got %s %q, want %s %q", &got, r.stderr, test.want, test.stderr)
				}
			})
		}
	})
}

// Jobs that call at once get each its own answer, wherever the lock is.
func TestShellConcurrentCalls(t *testing.T) {
	testenv.NoRace(t)
	const source = `
i=0
while [ $i -lt 30 ]; do
	i=$((i + 1))
	( x=$(add $i 1000) && [ "$x" = $((i + 1000)) ] || printf 'wrong: %s\n' "$i $x"
	  add $i 0 | { read -r y; [ "$y" = "$i" ] || printf 'wrong: %s\n' "$i $y"; } ) &
done
wait
add 1 1`
	shEach(t, func(t *testing.T, shell string) {
		for _, dir := range []string{t.TempDir(), "/nonexistent"} {
			r := shRun(t, bootstrap.Script{Shell: shell, Source: source}, fakehost.Tools(), func(cmd *exec.Cmd, h *fakehost.Host) {
				cmd.Env = append(cmd.Env, "TMPDIR="+dir)
			})
			if r.stdout != "2\n" || r.stderr != "" || len(r.host.Calls()) != 61 {
				t.Errorf("%s: got %q %q, %d calls", dir, r.stdout, r.stderr, len(r.host.Calls()))
			}
			if left, _ := filepath.Glob(dir + "/.*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	})
}

// A job that is killed during its call does not keep the others from theirs.
func TestShellKilledCaller(t *testing.T) {
	testenv.NoRace(t)
	shEach(t, func(t *testing.T, shell string) {
		tools := fakehost.Tools()
		started := make(chan struct{})
		tools["null"] = func(c fakehost.Call) (any, error) {
			close(started)
			<-c.Canceled // the end of the channel
			return nil, nil
		}
		r := shRun(t, bootstrap.Script{Shell: shell, Source: "null & p=$!\nread -r go\nkill -9 $p\nadd 1 2; add 3 4"}, tools, func(cmd *exec.Cmd, _ *fakehost.Host) {
			stdinUntil(t, cmd, started)
		})
		if r.stdout != "3\n7\n" {
			t.Errorf("got %q %q", r.stdout, r.stderr)
		}
	})
}

// A trap that runs during a call does not spoil it, and cannot call.
func TestShellTrapDuringCall(t *testing.T) {
	testenv.NoRace(t)
	shEach(t, func(t *testing.T, shell string) {
		tools := fakehost.Tools()
		tools["say"] = func(c fakehost.Call) (any, error) {
			var in struct{ Text string }
			var pid int
			if err := errors.Join(json.Unmarshal(c.Arguments, &in), json.Unmarshal([]byte(in.Text), &pid)); err != nil {
				return nil, err
			}
			asleep(t, pid) // in its read, which the signal ends
			err := syscall.Kill(pid, syscall.SIGUSR1)
			asleep(t, pid) // in the next one, after the trap
			return "said", err
		}
		r := shRun(t, bootstrap.Script{Shell: shell, Source: "trap 'add 1 2; printf trapped; trap : USR1' USR1\nadd 3 4; say text=$$; add 1 1"}, tools, nil)
		if r.stdout != "7\ntrappedsaid\n2\n" || r.stderr != "add: busy: called by a trap, during a call\n" {
			t.Errorf("got %q %q", r.stdout, r.stderr)
		}
	})
}

// What the host sends besides is passed over, and its end is an error.
func TestShellNotificationsAndEnd(t *testing.T) {
	testenv.NoRace(t)
	shEach(t, func(t *testing.T, shell string) {
		tools := fakehost.Tools()
		var host *fakehost.Host
		tools["echo"] = func(c fakehost.Call) (any, error) {
			c.Notify(1)
			host.Send(map[string]any{"jsonrpc": "2.0", "method": "cancel", "params": struct{}{}})
			return true, nil
		}
		tools["null"] = func(c fakehost.Call) (any, error) {
			return nil, host.CloseWrite()
		}
		r := shRun(t, bootstrap.Script{Shell: shell, Source: "echo\nnull || printf '%s' $?"}, tools, func(_ *exec.Cmd, h *fakehost.Host) { host = h })
		if r.stdout != "true\n1" || r.stderr != "null: canceled: the host closed the connection\n" {
			t.Errorf("got %q %q", r.stdout, r.stderr)
		}
	})
}

// Line numbers are those of the script.
func TestShellLineNumbers(t *testing.T) {
	testenv.NoRace(t)
	shEach(t, func(t *testing.T, shell string) {
		r := shRun(t, bootstrap.Script{Shell: shell, Source: "\n\nnosuchprogram", Vars: map[string]json.RawMessage{"x": json.RawMessage("1")}}, nil, nil)
		if !regexp.MustCompile(`\b3: .*nosuchprogram`).MatchString(r.stderr) || r.status != 127 {
			t.Errorf("got %q, status %d", r.stderr, r.status)
		}
	})
}

// Which names become functions, and of what.
func TestShellNames(t *testing.T) {
	testenv.NoRace(t)
	tools := []bootstrap.Tool{
		{Name: "a.b"}, {Name: "a_b"}, {Name: "x-y"}, {Name: "if"}, {Name: "exit"}, {Name: "tool"}, {Name: "read"}, {Name: "printf"}, {Name: "p-q"}, {Name: "p_q"},
		{Name: "pin.bare"}, {Name: "other.bare"},
	}
	serve := map[string]fakehost.Tool{}
	for _, tl := range tools {
		serve[tl.Name] = func(fakehost.Call) (any, error) { return tl.Name, nil }
	}
	shEach(t, func(t *testing.T, shell string) {
		r := shRun(t, bootstrap.Script{Shell: shell, Tools: tools, Namespace: "pin", Source: `
a_b; tool a.b; x_y; tool x-y; tool if; tool exit; tool tool; read; printf; command printf 'true\n'; p_q; tool p-q
bare; pin_bare; tool pin.bare; other_bare; tool bare
`}, serve, nil)
		const want = "a_b a.b x-y x-y if exit tool read printf true p_q p-q pin.bare pin.bare pin.bare other.bare pin.bare"
		if got := strings.Join(strings.Fields(r.stdout), " "); got != want || r.stderr != "" {
			t.Errorf("got  %s %q\nwant %s", got, r.stderr, want)
		}
	})
}
