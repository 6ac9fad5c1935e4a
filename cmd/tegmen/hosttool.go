package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
)

// frame bounds a message to or from code, and so the output of a tool.
const frame = 8 * engine.MiB

type toolFunc = func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error)

// hostTools are the running calls of commands on the host.
type hostTools struct{ running sync.RWMutex }

// tracked makes close wait for a call.
func (h *hostTools) tracked(call toolFunc) toolFunc {
	return func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		if !h.running.TryRLock() { // only close holds it for writing
			return nil, errors.New("the run is over")
		}
		defer h.running.RUnlock()
		return call(ctx, arguments)
	}
}

// close waits for the running calls and prevents new ones. The contexts of all calls must
// be done.
func (h *hostTools) close() { h.running.Lock() }

// hostCommand starts the program of a tool.
type hostCommand struct {
	path string
	args []string
	env  []string
	dir  string
}

// call runs the command with the arguments on standard input. Its standard output is the
// value: JSON, or else text. When it has ended, or the context is done, the rest of its
// process group is killed.
func (c hostCommand) call(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	out, tail := &bounded{limit: int(frame), full: cancel}, &lastPart{limit: 2000}
	cmd := exec.CommandContext(limited, c.path, c.args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(arguments), out, tail
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = 100 * time.Millisecond // in case a process that it left holds the output open
	// It has its own group: the terminal's signals are for tegmen and the guest.
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	if err := cmd.Start(); err != nil {
		return nil, commandError(err.Error(), nil)
	}
	err := cmd.Wait()
	_ = cmd.Cancel() // the group may be empty
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.exceeded:
		return nil, commandError(fmt.Sprintf("printed more than %s", frame), nil)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, failed(err, tail)
	}
	return valueOf(out.b.Bytes())
}

func commandError(message string, details any) *broker.Error {
	return &broker.Error{Code: broker.CodeTool, Type: "CommandError", Message: message, Data: details}
}

// failed reports how a command ended, in its own words if it printed any.
func failed(err error, tail *lastPart) error {
	message := tail.text()
	if message == "" {
		message = err.Error() // "exit status 3", "signal: killed"
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return commandError(message, nil)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		sig := status.Signal()
		return commandError(message, map[string]any{"exit_code": 128 + int(sig), "signal": sig.String()})
	}
	return commandError(message, map[string]any{"exit_code": exit.ExitCode()})
}

// valueOf makes JSON from the output of a command.
func valueOf(out []byte) (json.RawMessage, error) {
	switch {
	case len(out) == 0:
		return nil, nil
	case !utf8.Valid(out):
		return nil, commandError("printed neither JSON nor UTF-8 text", nil)
	case json.Valid(out):
		return out, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // shells must be able to read it
	err := enc.Encode(strings.TrimSuffix(string(out), "\n"))
	return b.Bytes(), err
}

// bounded keeps what is written, up to a limit.
type bounded struct {
	b        bytes.Buffer
	limit    int
	full     func() // called when the limit is exceeded
	exceeded bool
}

func (w *bounded) Write(p []byte) (int, error) {
	if w.b.Len()+len(p) > w.limit {
		w.exceeded = true
		w.full()
		return 0, errors.New("too much output")
	}
	return w.b.Write(p)
}

// lastPart keeps the end of what is written.
type lastPart struct {
	b     []byte
	limit int
	cut   bool
}

func (w *lastPart) Write(p []byte) (int, error) {
	n := len(p)
	w.cut = w.cut || len(w.b)+n > w.limit
	p = p[max(0, n-w.limit):]
	w.b = append(w.b[max(0, len(w.b)+len(p)-w.limit):], p...)
	return n, nil
}

// text begins at the start of a line, if it can.
func (w *lastPart) text() string {
	s := string(w.b)
	if w.cut {
		if _, rest, ok := strings.Cut(s, "\n"); ok && strings.TrimSpace(rest) != "" {
			s = rest
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd"))
}
