package agent

import (
	"cmp"
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

// ShellInput is the input of Tools.Shell.
type ShellInput struct {
	Command string  `json:"command"`           // at most 131,071 bytes
	Timeout float64 `json:"timeout,omitempty"` // seconds, at most Options.MaxTimeout; 0 is Options.Timeout
	Cwd     string  `json:"cwd,omitempty"`     // absolute, or relative to where commands start; "" is there
	Stdin   string  `json:"stdin,omitempty"`   // the command's standard input
	Shell   string  `json:"shell,omitempty"`   // one of Tools.Shells; "" is the first
}

// PythonInput is the input of Tools.RunPython.
type PythonInput struct {
	Code    string  `json:"code"`              // at most 1 MiB
	Cwd     string  `json:"cwd,omitempty"`     // absolute, or relative to where commands start; "" is there
	Timeout float64 `json:"timeout,omitempty"` // seconds, at most Options.MaxTimeout; 0 is Options.Timeout
	Stdin   string  `json:"stdin,omitempty"`   // the program's standard input
}

// maxArg is the longest argument that Linux passes to a program: MAX_ARG_STRLEN less the
// final NUL.
const maxArg = 128<<10 - 1

// maxCode leaves space for the environment within execve's limit for all arguments.
const maxCode = 1 << 20

// Shell runs a command in a non-login shell. The answer is the command's output, with a
// line [stderr] or [stdout] where the stream changes, followed by [exit code: N] if it is
// not 0, or [timeout after Ns]. It is "(no output)" if it would be empty. Background
// processes of the command keep running, but a timeout kills everything that it started.
func (t *Tools) Shell(ctx context.Context, in ShellInput) (string, error) {
	return t.ShellStream(ctx, in, nil)
}

// ShellStream is like Shell and also passes the command's output to tell as it arrives,
// in whole characters and from one goroutine at a time. A slow tell slows the command
// down, but delays the answer by about a second at most.
func (t *Tools) ShellStream(ctx context.Context, in ShellInput, tell func(from Stream, text string)) (string, error) {
	sh, err := t.shell(in.Shell)
	switch {
	case err != nil:
	case in.Command == "":
		err = invalid("no command")
	case len(in.Command) > maxArg:
		err = invalid("the command is longer than %d bytes: write it to a file and run that", maxArg)
	}
	if err != nil {
		return "", &engine.Error{Op: "shell", Err: err}
	}
	cmd := t.box.CommandContext(ctx, sh, "-c", in.Command)
	text, _, err := t.run(job{cmd: cmd, cwd: in.Cwd, seconds: in.Timeout, stdin: in.Stdin, tell: tell})
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

// runScript writes the code, all arguments from the third on, to a file, so that
// tracebacks show its lines. Modules in the working directory can be imported. Output is
// unbuffered, since a timeout would lose what is in a buffer.
const runScript = `python=$1 f=${TMPDIR:-/tmp}/$2; shift 2
(umask 077; set -C; printf %s "$@" >"$f") || exit
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
"$python" -u "$f"; code=$?
rm -f "$f"
exit "$code"`

// RunPython runs a Python program. The answer is like that of Shell. The program can
// import modules from its working directory.
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
		remedy := t.o.Python + " is not in the PATH of the sandbox"
		return "", &engine.UnsupportedError{Feature: "python", Remedy: remedy}
	case len(in.Code) > maxCode:
		return "", invalid("the code is longer than %d bytes: write it to a file and run that", maxCode)
	case strings.ContainsRune(in.Code, 0):
		return "", invalid("the code contains a NUL byte")
	}
	name := "code-" + unguessable() + ".py"
	args := []string{t.python, name}
	for code := in.Code; code != ""; {
		n := min(len(code), maxArg)
		args, code = append(args, code[:n]), code[n:]
	}
	cmd := t.script(ctx, runScript, args...)
	text, how, err := t.run(job{cmd: cmd, cwd: in.Cwd, seconds: in.Timeout, stdin: in.Stdin})
	if how != engine.OutcomeOK && how != engine.OutcomeExit && how != "" {
		// The script was killed before it could remove its file.
		clean := t.script(context.WithoutCancel(ctx), `rm -f "${TMPDIR:-/tmp}/$1"`, name)
		clean.Wall = t.o.FileTimeout
		_, _ = clean.Run() // a file that is left does no harm
	}
	return text, err
}

// script returns a Cmd for one of our own scripts.
func (t *Tools) script(ctx context.Context, script string, args ...string) *engine.Cmd {
	return t.box.CommandContext(ctx, t.sh[0], append(append(t.sh[1:len(t.sh):len(t.sh)], script, "sh"), args...)...)
}

func unguessable() string { return strings.ToLower(rand.Text()[:16]) }

// job is a command that a model asked for.
type job struct {
	cmd     *engine.Cmd
	cwd     string
	seconds float64 // the timeout; 0 is the default
	stdin   string
	tell    func(Stream, string) // may be nil
}

// run runs a job and returns the answer and how the command ended.
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
	case engine.OutcomeOK:
		text = said.text()
	case engine.OutcomeTimeout:
		text = said.text("[timeout after " + asSeconds(cmd.Wall) + "s]")
	case engine.OutcomeCPU:
		text = said.text(code, "[used up its CPU time]")
	case engine.OutcomeCanceled:
		text, err = said.text("[canceled]"), context.Canceled
	case engine.OutcomeLost:
		text = said.text("[sandbox lost]")
		err = fmt.Errorf("the sandbox ended while the command ran: %w", engine.ErrClosed)
	default:
		text = said.text(code)
	}
	return cmp.Or(text, "(no output)"), res.Outcome, err
}

// timeout converts seconds to a duration. It refuses NaN and infinity as well.
func (t *Tools) timeout(seconds float64) (time.Duration, error) {
	switch {
	case seconds == 0:
		return t.o.Timeout, nil
	case seconds > 0 && seconds <= t.o.MaxTimeout.Seconds():
		return max(time.Duration(seconds*float64(time.Second)), 1), nil
	}
	return 0, invalid("timeout %v: want more than 0 and at most %s seconds", seconds, asSeconds(t.o.MaxTimeout))
}

func asSeconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// failure rewords an error of the engine for a model.
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

// limited is a Writer that keeps the first max bytes and then fails.
type limited struct {
	buf []byte
	max int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.max-len(l.buf))
	l.buf = append(l.buf, p[:n]...)
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
