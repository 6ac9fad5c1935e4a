package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// ShellInput is what Tools.Shell takes.
type ShellInput struct {
	Command string  `json:"command"`
	Timeout float64 `json:"timeout,omitempty"` // seconds; 0 means Options.Timeout
	Cwd     string  `json:"cwd,omitempty"`     // relative to where commands of the sandbox start
	Stdin   string  `json:"stdin,omitempty"`   // "" is nothing to read
	Shell   string  `json:"shell,omitempty"`   // one of Tools.Shells; "" is the first
}

// PythonInput is what Tools.RunPython takes; its fields are those of ShellInput.
type PythonInput struct {
	Code    string  `json:"code"`
	Cwd     string  `json:"cwd,omitempty"`
	Timeout float64 `json:"timeout,omitempty"`
	Stdin   string  `json:"stdin,omitempty"`
}

// maxArg is the longest argument that Linux passes to a program (MAX_ARG_STRLEN,
// with the byte that ends it).
const maxArg = 128<<10 - 1

// maxCode leaves room for the environment in what execve takes altogether.
const maxCode = 1 << 20

// Shell runs a command by a shell that is no login shell. The answer is what it
// wrote, with a line [stderr] or [stdout] where the output changes, then
// [exit code: N] if that is not 0, or [timeout after Ns]; (no output) if there
// is nothing to say. Processes that the command left in the background live on,
// except after a timeout, which ends whatever it started.
func (t *Tools) Shell(ctx context.Context, in ShellInput) (string, error) {
	return t.ShellStream(ctx, in, nil)
}

// ShellStream is Shell that also tells what the command writes, while it does:
// whole characters, from one goroutine at a time. A slow receiver slows the
// command; it delays the answer by no more than a second or so.
func (t *Tools) ShellStream(ctx context.Context, in ShellInput, tell func(from Stream, text string)) (string, error) {
	sh, err := t.shell(in.Shell)
	switch {
	case err != nil:
	case in.Command == "":
		err = invalid("no command")
	case len(in.Command) > maxArg:
		err = invalid("a command of more than %d bytes: write it to a file and run that", maxArg)
	}
	if err != nil {
		return "", &engine.Error{Op: "shell", Err: err}
	}
	cmd := t.box.CommandContext(ctx, sh, "-c", in.Command)
	text, _, err := t.run(job{cmd, in.Cwd, in.Timeout, in.Stdin, tell})
	if err != nil {
		return text, &engine.Error{Op: "shell", Err: err}
	}
	return text, nil
}

func (t *Tools) shell(name string) (path string, err error) {
	if name == "" {
		return t.shells[0].path, nil
	}
	for _, s := range t.shells {
		if s.name == name {
			return s.path, nil
		}
	}
	return "", invalid("shell %q: the sandbox has %s", name, strings.Join(t.Shells(), ", "))
}

// runScript puts the code, all arguments from the third on, into a file, so that
// tracebacks show its lines. Modules beside the caller's files can be imported.
// Output is not buffered: a timeout would lose it.
const runScript = `python=$1 f=${TMPDIR:-/tmp}/$2; shift 2
(umask 077; set -C; printf %s "$@" >"$f") || exit
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
"$python" -u "$f"; code=$?
rm -f "$f"
exit "$code"`

// RunPython runs a program in Python, up to 1 MiB of it. The answer is that of
// Shell. Modules in the directory where it runs can be imported.
func (t *Tools) RunPython(ctx context.Context, in PythonInput) (string, error) {
	text, err := t.runPython(ctx, in)
	if err != nil {
		return text, &engine.Error{Op: "run python", Err: err}
	}
	return text, nil
}

func (t *Tools) runPython(ctx context.Context, in PythonInput) (string, error) {
	switch {
	case t.python == "":
		return "", &engine.UnsupportedError{Feature: "python", Remedy: t.o.Python + " is not in the PATH of the sandbox"}
	case len(in.Code) > maxCode:
		return "", invalid("code of more than %d bytes: write it to a file and run that", maxCode)
	case strings.ContainsRune(in.Code, 0):
		return "", invalid("code with a NUL byte")
	}
	name := "code-" + unguessable() + ".py"
	args := []string{t.python, name}
	for code := in.Code; code != ""; {
		n := min(len(code), maxArg)
		args, code = append(args, code[:n]), code[n:]
	}
	cmd := t.script(ctx, runScript, args...)
	text, how, err := t.run(job{cmd, in.Cwd, in.Timeout, in.Stdin, nil})
	if how != engine.OK && how != engine.Exit && how != "" {
		// The script did not come to it. Nothing depends on its success.
		clean := t.script(context.WithoutCancel(ctx), `rm -f "${TMPDIR:-/tmp}/$1"`, name)
		clean.Wall = t.o.FileTimeout
		_, _ = clean.Run()
	}
	return text, err
}

// script is a Cmd for one of our own scripts.
func (t *Tools) script(ctx context.Context, script string, args ...string) *engine.Cmd {
	return t.box.CommandContext(ctx, t.sh[0], append(append(t.sh[1:len(t.sh):len(t.sh)], script, "sh"), args...)...)
}

func unguessable() string { return strings.ToLower(rand.Text()[:16]) }

// job is a command that a model asked for.
type job struct {
	cmd     *engine.Cmd
	cwd     string
	seconds float64
	stdin   string
	tell    func(Stream, string)
}

// run runs it, and says what became of it.
func (t *Tools) run(j job) (text string, how engine.Outcome, err error) {
	cmd := j.cmd
	if cmd.Wall, err = t.timeout(j.seconds); err != nil {
		return "", "", err
	}
	cmd.Dir = j.cwd
	if j.stdin != "" {
		cmd.Stdin = strings.NewReader(j.stdin)
	}
	said := newTranscript(int(t.o.Output), j.tell)
	cmd.Stdout, cmd.Stderr = output{said, Stdout}, output{said, Stderr}
	res, err := cmd.Run()
	if err != nil {
		return "", "", failure(err, j.cwd)
	}
	code := "[exit code: " + strconv.Itoa(res.ExitCode) + "]"
	switch res.Outcome {
	case engine.OK:
		text = said.text()
	case engine.Timeout:
		text = said.text("[timeout after " + asSeconds(cmd.Wall) + "s]")
	case engine.CPU:
		text = said.text(code, "[used up its CPU time]")
	case engine.Canceled:
		text, err = said.text("[canceled]"), context.Canceled
	case engine.Lost:
		text, err = said.text("[sandbox lost]"), fmt.Errorf("the sandbox ended while the command ran: %w", engine.ErrClosed)
	default:
		text = said.text(code)
	}
	return orDefault(text, "(no output)"), res.Outcome, err
}

// timeout refuses what no duration can be made of, too.
func (t *Tools) timeout(seconds float64) (time.Duration, error) {
	switch {
	case seconds == 0:
		return t.o.Timeout, nil
	case seconds > 0 && seconds <= t.o.MaxTimeout.Seconds():
		return max(time.Duration(seconds*float64(time.Second)), 1), nil
	}
	return 0, invalid("timeout %v: more than 0 and at most %s seconds", seconds, asSeconds(t.o.MaxTimeout))
}

func asSeconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// failure puts an error of the engine into words for a model.
func failure(err error, cwd string) error {
	var step *engine.StepError
	switch {
	case errors.Is(err, engine.ErrClosed), errors.As(err, &step) && step.Call == "setns":
		return fmt.Errorf("the sandbox has ended: %w", engine.ErrClosed)
	case errors.As(err, &step) && step.Call == "chdir":
		return fmt.Errorf("cwd %q: %w", cwd, step.Errno)
	}
	return err
}

// limited keeps the first bytes that are written, and fails when there are more.
type limited struct {
	buf  []byte
	room int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.room-len(l.buf))
	l.buf = append(l.buf, p[:n]...)
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
