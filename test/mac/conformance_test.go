//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// What other systems for running models' code do on macOS (chuk), and what they get wrong.
func TestConformance(t *testing.T) {
	t.Run("chuk: five tool calls in a loop", fiveCallsInALoop)
	t.Run("chuk: no connection", inetConnectFails)
	t.Run("chuk: no write to etc", writeToEtcFails)
	t.Run("chuk: an endless loop is ended", endlessLoopTimesOut)
	t.Run("the host's environment is not seen", hostEnvironment)
	t.Run("limits cannot be raised", raisingLimits)
	t.Run("unix sockets of the host are out of reach", unixSocketsOfTheHost)
	t.Run("workspaces have odd names", namesOfWorkspaces)
}

func code(t testing.TB, eng *engine.Engine, s engine.Spec, language, source string) *engine.Result {
	t.Helper()
	res, err := eng.RunCode(testbox.Within(t, limit), s, engine.Code{Language: language, Source: source}, testbox.Adders())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func fiveCallsInALoop(t *testing.T) {
	needs(t, "python3")
	res := code(t, open(t, nil), engine.Spec{}, "python",
		"total = 0\nfor i in range(5):\n    total = add(a=total, b=i + 1)\ntotal")
	if res.Outcome != engine.OutcomeOK || string(res.Code.Value) != "15" || len(res.Code.ToolCalls) != 5 {
		t.Errorf("%s, value %s, %d calls, error %+v, stderr %s; want 15 and 5 calls", res.Outcome, res.Code.Value,
			len(res.Code.ToolCalls), res.Code.Error, res.Stderr)
	}
}

func inetConnectFails(t *testing.T) {
	testenv.Need(t, testenv.Seatbelt)
	needs(t, "python3")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connects(t, "import socket; socket.create_connection(('127.0.0.1', "+strings.TrimPrefix(l.Addr().String(),
		"127.0.0.1:")+"), 5); print('connected')")
}

// A socket of docker, of an ssh agent or of a session bus would lead out.
func unixSocketsOfTheHost(t *testing.T) {
	testenv.Need(t, testenv.Seatbelt)
	needs(t, "python3")
	path := filepath.Join(dir(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connects(t, "import socket; socket.socket(socket.AF_UNIX).connect('"+path+"'); print('connected')")
}

// connects checks that a script can connect outside and cannot inside.
func connects(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("python3", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("outside: %v: %s", err, out)
	}
	res := testbox.Run(t, sandbox(t, engine.Spec{}), "python3", "-c", script)
	if res.Outcome != engine.OutcomeExit || !strings.Contains(string(res.Stderr), "PermissionError") {
		t.Errorf("inside: %s, stdout %s, stderr %s; want a PermissionError", res.Outcome, res.Stdout, res.Stderr)
	}
}

func writeToEtcFails(t *testing.T) {
	testenv.Need(t, testenv.Seatbelt)
	res := testbox.Run(t, sandbox(t, engine.Spec{}), "sh", "-c", "echo x >/etc/tegmen-test-etc")
	if exists("/etc/tegmen-test-etc") {
		t.Error("it was made", os.Remove("/etc/tegmen-test-etc"))
	}
	if res.Outcome != engine.OutcomeExit || !strings.Contains(string(res.Stderr), "Operation not permitted") {
		t.Errorf("%s, stderr %s; want EPERM, Seatbelt's, also where the mode of /etc would refuse", res.Outcome, res.Stderr)
	}
}

func endlessLoopTimesOut(t *testing.T) {
	needs(t, "python3")
	temp := private(t)
	eng := open(t, nil)
	mark := testbox.Marker(20)
	res := code(t, eng, engine.Spec{Limits: engine.Limits{Wall: 2 * time.Second}}, "python",
		"import subprocess\nsubprocess.Popen(['sleep', '"+mark+"'])\nprint('x', flush=True)\nwhile True: pass")
	if res.Outcome != engine.OutcomeTimeout || string(res.Stdout) != "x\n" {
		t.Errorf("%s, stdout %q, stderr %s; want a timeout, and what was written before", res.Outcome, res.Stdout, res.Stderr)
	}
	if left := testbox.Alive(t, mark); len(left) > 0 {
		t.Errorf("alive: %q", left)
	}
	empty(t, temp)
}

// If everything else can be read, keys and passwords are hidden by default; Hidden adds to them, and a mount
// shows what it mounts.
func TestHidden(t *testing.T) {
	temp := dir(t)
	eng := open(t, func(h *engine.Host) { h.Home = temp })
	extra, aws := filepath.Join(temp, "extra"), filepath.Join(temp, ".aws")
	if err := os.Mkdir(aws, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		hidden       []string
		mounts       []engine.Mount
		want, absent []string
	}{
		{"chuk: by default", nil, nil, []string{".ssh", ".aws"}, []string{"extra"}},
		{"chuk: more", []string{extra}, nil, []string{".ssh", ".aws", "extra"}, nil},
		{"chuk: less", nil, []engine.Mount{{Source: aws, Target: aws, ReadOnly: true}}, []string{".ssh"}, []string{".aws"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := eng.Compile(engine.Spec{FS: engine.FS{View: engine.ViewHost, Hidden: c.hidden, Mounts: c.mounts}})
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(p.String(), "\n")
			for hidden, names := range map[bool][]string{true: c.want, false: c.absent} {
				for _, name := range names {
					if slices.Contains(lines, "hide     "+filepath.Join(temp, name)) != hidden {
						t.Errorf("hides %s: %v; plan\n%s", name, !hidden, p)
					}
				}
			}
		})
	}
}

func TestHiddenCannotBeRead(t *testing.T) {
	testenv.Need(t, testenv.Seatbelt)
	home := dir(t)
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".ssh/key", "plain"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	box := start(t, open(t, func(h *engine.Host) { h.Home = home }), engine.Spec{FS: engine.FS{View: engine.ViewHost}})
	if got := output(t, box, "cat", filepath.Join(home, "plain")); got != "plain" {
		t.Errorf("with all to be read: %q", got)
	}
	for _, script := range []string{"cat .ssh/key", "ls .ssh", "stat .ssh/key", "cat .SSH/KEY",
		"cat /System/Volumes/Data" + home + "/.ssh/key"} {
		res := testbox.Run(t, box, "sh", "-c", "cd "+home+" && "+script)
		if res.Outcome != engine.OutcomeExit || len(res.Stdout) > 0 {
			t.Errorf("%s: %s, stdout %s, stderr %s", script, res.Outcome, res.Stdout, res.Stderr)
		}
	}
}

func hostEnvironment(t *testing.T) {
	t.Setenv("TEGMEN_TEST_SECRET", "only-of-the-host")
	needs(t, "python3")
	eng := open(t, nil)
	for name, script := range map[string]string{"sh": "env", "bash": "env",
		"python": "import os\nprint(dict(os.environ))"} {
		res := code(t, eng, engine.Spec{}, name, script)
		if res.Outcome != engine.OutcomeOK || len(res.Stdout) == 0 || strings.Contains(string(res.Stdout), "only-of-the-host") {
			t.Errorf("%s: %s, stdout %s", name, res.Outcome, res.Stdout)
		}
	}
}

func raisingLimits(t *testing.T) {
	if standIn && os.Geteuid() == 0 {
		t.Skip("root may raise what it likes, and is no guest on a Mac")
	}
	box := sandbox(t, engine.Spec{Keep: true,
		Limits: engine.Limits{Files: 100, CPUTime: 100 * time.Second, FileSize: engine.MiB}})
	for _, c := range []struct{ script, want string }{
		{"ulimit -S -n; ulimit -H -n", "100 100"},
		{"ulimit -S -t; ulimit -H -t", "100 101"},
		{"ulimit -c; ulimit -H -c", "0 0"},
		{"ulimit -n 101", "refused"},
		{"ulimit -H -n 5000", "refused"},
		{"ulimit -H -t 200", "refused"},
		{"ulimit -t unlimited", "refused"},
		{"ulimit -H -c 1", "refused"},
		{"ulimit -H -f unlimited", "refused"},
		{"ulimit -S -t 101 && ulimit -t", "101"}, // the second that it has to end by itself
	} {
		got := strings.Join(strings.Fields(sh(t, box, "bash -c '"+c.script+"' 2>/dev/null || echo refused")), " ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.script, got, c.want)
		}
	}
}

// A limit is the one that was asked for, whatever unit a shell counts in. The environment can change that unit.
func TestFileSize(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true, Limits: engine.Limits{FileSize: engine.MiB}})
	for _, env := range [][]string{nil, {"POSIXLY_CORRECT=1"}} {
		cmd := box.CommandContext(testbox.Within(t, limit), "sh", "-c",
			"dd if=/dev/zero of=big bs=65536 count=64 2>/dev/null; wc -c <big")
		cmd.ExtraEnv = env
		res, err := cmd.Run()
		if err != nil || strings.TrimSpace(string(res.Stdout)) != "1048576" {
			t.Errorf("with %q: a file of %q bytes, want 1048576; %v", env, res.Stdout, err)
		}
	}
}

func namesOfWorkspaces(t *testing.T) {
	eng := open(t, nil)
	for _, name := range []string{
		"a:b", `q"uo'te`, "(allow default)", `")(allow default)("`, "two  spaces ", "k=v", "=", "-D", "Grüße", "日本語",
		`back\slash`, "new\nline", "a;b#c", "$HOME", "`id`", "*", "[x]", "%n",
	} {
		ws := filepath.Join(dir(t), name)
		if err := os.Mkdir(ws, 0o755); err != nil {
			t.Fatal(err)
		}
		box := start(t, eng, engine.Spec{FS: engine.FS{Workspace: ws}})
		if got := output(t, box, "sh", "-c",
			`echo x >f && cat f && mkdir d && mv f d/g && printf %s "$(pwd -P)"`); got != "x\n"+ws {
			t.Errorf("%q: got %q", name, got)
		}
		if text, err := os.ReadFile(filepath.Join(ws, "d", "g")); err != nil || string(text) != "x\n" {
			t.Errorf("%q: on the host %q, %v", name, text, err)
		}
		if err := box.Close(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
