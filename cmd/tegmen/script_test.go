//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/seccomp"
)

var update = flag.Bool("update", false, "rewrite what the scripts in testdata/script expect")

// patience bounds how long a script waits for something.
const patience = 10 * time.Second

// TestScripts runs testdata/script/*.txtar against the command that TestMain installs.
// Besides testscript's own, scripts have the conditions [root] and [cgroup] and the
// commands of scriptCommands.
func TestScripts(t *testing.T) {
	// testscript leaves its directory there when -run picks some scripts; guests of root
	// must be able to reach it.
	t.Setenv("GOTMPDIR", testenv.Dir(t))
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		ContinueOnError:     true,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil
			case "scopes": // of Landlock, which the level without namespaces needs
				h, err := engine.ProbeHost()
				return h.Landlock >= ns.FirstScope, err
			case "libseccomp":
				_, err := seccomp.Compile(&seccomp.Policy{DefaultAction: "SCMP_ACT_ALLOW"}, runtime.GOARCH, "6.1")
				return !errors.Is(err, seccomp.ErrNoCompiler), nil
			case "cgroup":
				h, err := engine.ProbeHost()
				return h.Cgroup.Has("cpu", "memory", "pids"), err
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(env *testscript.Env) error {
			s := new(session)
			env.Values[sessionKey] = s
			env.Defer(s.close)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			// testscript makes its directories private. Guests of root are nobody and
			// must reach them.
			return os.Chmod(filepath.Dir(env.WorkDir), 0o755)
		},
		Cmds: scriptCommands,
	})
}

var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	// exitcode N PROGRAM ARG... runs a program that must exit with N.
	"exitcode": func(ts *testscript.TestScript, neg bool, args []string) {
		want := number(ts, args, 2)
		if got := exitCode(ts, ts.Exec(args[1], args[2:]...)); got != want {
			ts.Fatalf("exit code %d, want %d", got, want)
		}
	},
	// transcript FILE runs the lines of FILE that begin with "$ " in a shell and prints
	// each with its output: standard error after "! ", a non-zero exit code in brackets,
	// the work directory as $WORK. Compare it with "cmp stdout FILE". With -refused, each
	// command must exit with 125, which is not shown, print nothing on standard output
	// and one line on standard error.
	"transcript": transcript,
	// gone WORD waits until no process has WORD in its arguments, alive until
	// one has.
	"gone":  func(ts *testscript.TestScript, neg bool, args []string) { awaitProcess(ts, args, false) },
	"alive": func(ts *testscript.TestScript, neg bool, args []string) { awaitProcess(ts, args, true) },
	// start [-tty] PROGRAM ARG... starts a session in the background, one at a time; -tty
	// gives it a terminal of 24 by 80.
	"start": func(ts *testscript.TestScript, neg bool, args []string) { sessionOf(ts).start(ts, args) },
	// await REGEXP waits until new output of the session matches.
	"await": func(ts *testscript.TestScript, neg bool, args []string) { sessionOf(ts).await(ts, args) },
	// send TEXT types it on the terminal; \n, \x03 and the like are as in Go.
	"send": func(ts *testscript.TestScript, neg bool, args []string) { sessionOf(ts).send(ts, args) },
	// resize ROWS COLS changes the terminal.
	"resize": func(ts *testscript.TestScript, neg bool, args []string) { sessionOf(ts).resize(ts, args) },
	// signal NAME sends a signal to the session's process, and to it alone.
	"signal": func(ts *testscript.TestScript, neg bool, args []string) { sessionOf(ts).signal(ts, args) },
	// ended N waits for the session, which must exit with N.
	"ended": func(ts *testscript.TestScript, neg bool, args []string) { sessionOf(ts).ended(ts, args) },
}

func number(ts *testscript.TestScript, args []string, atLeast int) int {
	if len(args) < atLeast {
		ts.Fatalf("want at least %d arguments", atLeast)
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	return n
}

// exitCode is the exit code that a shell would report.
func exitCode(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if exit == nil {
		return 0
	}
	if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

func transcript(ts *testscript.TestScript, neg bool, args []string) {
	refused := len(args) == 2 && args[0] == "-refused"
	if len(args) == 0 {
		ts.Fatalf("usage: transcript [-refused] FILE")
	}
	var bad, out strings.Builder
	for line := range strings.Lines(ts.ReadFile(args[len(args)-1])) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		code := exitCode(ts, ts.Exec("sh", "-c", command))
		stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
		oneLine := strings.Count(stderr, "\n") == 1 && strings.HasPrefix(stderr, "tegmen: ")
		if refused && (code != 125 || stdout != "" || !oneLine) {
			fmt.Fprintf(&bad, "not refused in one line: %s", command)
		}
		out.WriteString(line)
		out.WriteString(shown("", stdout))
		out.WriteString(shown("! ", stderr))
		if code != 0 && !(refused && code == 125) {
			fmt.Fprintf(&out, "[%d]\n", code)
		}
	}
	_, err := io.WriteString(ts.Stdout(), strings.ReplaceAll(out.String(), ts.Getenv("WORK"), "$WORK"))
	ts.Check(err)
	if bad.Len() > 0 {
		ts.Fatalf("%s", bad.String())
	}
}

// shown is text with a prefix on each line and a note if the last line has no end.
func shown(prefix, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(prefix + line)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteString("(no newline)\n")
	}
	return b.String()
}

func awaitProcess(ts *testscript.TestScript, args []string, want bool) {
	if len(args) != 1 {
		ts.Fatalf("want one word")
	}
	eventually(ts, func() bool { return running(ts, args[0]) == want }, "%q is still (not) running", args[0])
}

func running(ts *testscript.TestScript, word string) bool {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	for _, f := range files {
		if args, err := os.ReadFile(f); err == nil && bytes.Contains(args, []byte(word)) {
			return true
		}
	}
	return false
}

func eventually(ts *testscript.TestScript, ok func() bool, format string, args ...any) {
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("after %v: "+format, append([]any{patience}, args...)...)
		}
	}
}

// sessionKey is where a script keeps its session.
const sessionKey = "session"

// session is a process in the background, possibly on a terminal.
type session struct {
	cmd    *exec.Cmd
	master *os.File
	done   chan struct{} // closed when it has ended
	err    error         // of Wait; read after done

	mu   sync.Mutex
	out  []byte // standard output and error
	seen int    // of out, by await
}

func sessionOf(ts *testscript.TestScript) *session { return ts.Value(sessionKey).(*session) }

func (s *session) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(s.out, p...)
	return len(p), nil
}

func (s *session) start(ts *testscript.TestScript, args []string) {
	if s.cmd != nil {
		ts.Fatalf("there is a session")
	}
	tty := len(args) > 0 && args[0] == "-tty"
	if tty {
		args = args[1:]
	}
	// env(1) looks in the script's PATH.
	cmd := exec.Command("/usr/bin/env", append([]string{"PATH=" + ts.Getenv("PATH")}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.WaitDelay = patience
	s.done, s.err, s.out, s.seen = make(chan struct{}), nil, nil, 0
	cmd.Stdout, cmd.Stderr = s, s
	read := func() {}
	if tty {
		master, slave, err := openTerminal()
		ts.Check(err)
		s.master = master
		defer slave.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		read = func() { _, _ = io.Copy(s, master) } // ends with EIO
	}
	ts.Check(cmd.Start())
	s.cmd = cmd
	go func() {
		defer close(s.done)
		finished := make(chan struct{})
		go func() { read(); close(finished) }()
		s.err = cmd.Wait()
		<-finished
	}()
}

func (s *session) await(ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: await REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	eventually(ts, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := re.FindIndex(s.out[s.seen:])
		if at != nil {
			s.seen += at[1]
		}
		return at != nil
	}, "no %q in the output", args[0])
}

func (s *session) send(ts *testscript.TestScript, args []string) {
	text, err := strconv.Unquote(`"` + strings.Join(args, " ") + `"`)
	ts.Check(err)
	_, err = io.WriteString(s.master, text)
	ts.Check(err)
}

func (s *session) resize(ts *testscript.TestScript, args []string) {
	rows, cols := number(ts, args, 2), number(ts, args[1:], 1)
	size := unix.Winsize{Row: uint16(rows), Col: uint16(cols)}
	ts.Check(unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &size))
}

func (s *session) signal(ts *testscript.TestScript, args []string) {
	if len(args) != 1 || unix.SignalNum("SIG"+args[0]) == 0 {
		ts.Fatalf("usage: signal NAME")
	}
	ts.Check(s.cmd.Process.Signal(unix.SignalNum("SIG" + args[0])))
}

func (s *session) ended(ts *testscript.TestScript, args []string) {
	want := number(ts, args, 1)
	select {
	case <-s.done:
	case <-time.After(patience):
		s.close()
		ts.Fatalf("it has not ended after %v; so far: %s", patience, s.out)
	}
	_, err := ts.Stdout().Write(s.out)
	ts.Check(err)
	got := exitCode(ts, s.err)
	s.close()
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// close ends it, if it has not ended.
func (s *session) close() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.done
	if s.master != nil {
		_ = s.master.Close() // nothing is written
	}
	s.cmd, s.master = nil, nil
}

// openTerminal makes a pseudo-terminal of 24 rows and 80 columns.
func openTerminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}
