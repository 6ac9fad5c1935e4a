//go:build unix

// Package fakehost is a small host for tests of guests. It answers in exactly the
// form that internal/wire does, records every request, and lets a test close the
// connection or send messages that a real host never would.
package fakehost

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"
)

// Host is one end of a connection. Set Job and Limit before Serve.
type Host struct {
	Job   any // the result of hello, as JSON
	Limit int // bytes of a line; New sets 8 MiB

	conn  *os.File
	tools map[string]Tool

	mu      sync.Mutex
	calls   []Call
	results []json.RawMessage
	busy    sync.WaitGroup // added to and waited for by the goroutine that reads
	done    chan struct{}
}

// Tool answers a call. An error that is no *Error has the code of a tool's failure.
type Tool func(call Call) (any, error)

// Call is a call as the guest sent it.
type Call struct {
	ID        json.RawMessage // as the guest chose it
	Name      string          // "name" or "namespace.name"
	Arguments json.RawMessage // the JSON object that the guest sent
	Progress  bool            // the guest asked for it
	Canceled  chan struct{}   // closed when the guest cancels the call, or is gone
	Notify    func(value any) // sends progress
}

// Error is the error that a request is answered with.
type Error struct {
	Code          int    // a number of JSON-RPC
	Type, Message string // data.type and message
	Details       any    // data.details; nil is left out
}

func (e *Error) Error() string { return e.Message }

// Raw is a value that is sent as it is, valid JSON or not.
type Raw string

// Calls returns the calls so far.
func (h *Host) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Results returns the parameters of each result so far.
func (h *Host) Results() []json.RawMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.results)
}

// Done is closed when the guest has closed its end and every call is answered.
func (h *Host) Done() <-chan struct{} { return h.done }

// Close closes the connection.
func (h *Host) Close() error { return h.conn.Close() }

// CloseWrite ends the stream to the guest; requests are still read.
func (h *Host) CloseWrite() error { return syscall.Shutdown(int(h.conn.Fd()), syscall.SHUT_WR) }

// New returns the guest's end of a socket pair, and the host at the other end. The
// caller closes the guest's end; call Serve, which closes the host's.
func New(t testing.TB, tools map[string]Tool) (*os.File, *Host) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
	if err := syscall.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}
	h := &Host{conn: os.NewFile(uintptr(fds[1]), "host"), tools: tools, Limit: 8 << 20, done: make(chan struct{})}
	return os.NewFile(uintptr(fds[0]), "guest"), h
}

// Serve starts to answer requests, until the guest closes its end or the test ends.
func (h *Host) Serve(t testing.TB) {
	t.Cleanup(func() {
		_ = h.conn.Close() // some tests have
		<-h.done
	})
	go func() {
		defer close(h.done)
		defer h.busy.Wait()
		canceled := map[string]chan struct{}{}
		for r := bufio.NewReaderSize(h.conn, 64<<10); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				if err != io.EOF && !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("host: %v", err)
				}
				for _, c := range canceled {
					close(c)
				}
				return
			}
			h.request(line, canceled)
		}
	}()
}

func (h *Host) request(line []byte, canceled map[string]chan struct{}) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Token, Name, Namespace string
			Arguments              json.RawMessage
			Progress               bool
			ID                     json.RawMessage
		}
	}
	var raw struct{ Params json.RawMessage }
	switch {
	case len(line) > h.Limit:
		h.fail(nil, &Error{-32007, "too_large", "a line is longer than a frame may be", nil})
		return
	case !utf8.Valid(line) || json.Unmarshal(line, &m) != nil || json.Unmarshal(line, &raw) != nil:
		h.fail(nil, &Error{-32700, "parse_error", "not JSON", nil})
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m.Method {
	case "hello":
		if m.Params.Token != "secret" {
			h.fail(m.ID, &Error{-32001, "unauthorized", "wrong token", nil})
			return
		}
		h.answer(m.ID, h.Job)
	case "result":
		h.results = append(h.results, raw.Params)
		if len(h.results) > 1 {
			h.fail(m.ID, &Error{-32008, "completed", "the run already has its result", nil})
			return
		}
		h.answer(m.ID, struct{}{})
	case "cancel":
		if c := canceled[string(m.Params.ID)]; c != nil {
			close(c)
			delete(canceled, string(m.Params.ID))
		}
	case "tools/call":
		name := m.Params.Name
		if m.Params.Namespace != "" {
			name = m.Params.Namespace + "." + name
		}
		call := Call{ID: m.ID, Name: name, Arguments: m.Params.Arguments, Progress: m.Params.Progress}
		call.Canceled = make(chan struct{})
		call.Notify = func(value any) {
			params := map[string]any{"id": m.ID, "value": value}
			h.Send(map[string]any{"jsonrpc": "2.0", "method": "progress", "params": params})
		}
		canceled[string(m.ID)] = call.Canceled
		h.calls = append(h.calls, call)
		h.busy.Go(func() { h.serveCall(call) })
	default:
		h.fail(m.ID, &Error{-32601, "method_not_found", "no such method", nil})
	}
}

func (h *Host) serveCall(call Call) {
	tool := h.tools[call.Name]
	if tool == nil {
		h.fail(call.ID, &Error{-32002, "not_found", fmt.Sprintf("no tool %q", call.Name), nil})
		return
	}
	value, err := tool(call)
	var e *Error
	switch {
	case errors.As(err, &e):
		h.fail(call.ID, e)
	case err != nil:
		h.fail(call.ID, &Error{-32000, "tool_error", err.Error(), nil})
	default:
		if raw, ok := value.(Raw); ok {
			_, _ = fmt.Fprintf(h.conn, `{"jsonrpc":"2.0","id":%s,"result":{"value":%s}}`+"\n", call.ID, raw)
			return
		}
		h.answer(call.ID, map[string]any{"value": value})
	}
}

func (h *Host) answer(id json.RawMessage, result any) {
	h.Send(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}

func (h *Host) fail(id json.RawMessage, e *Error) {
	type data struct {
		Type    string `json:"type"`
		Details any    `json:"details,omitempty"`
	}
	type wire struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    data   `json:"data"`
	}
	h.Send(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   wire            `json:"error"`
	}{"2.0", id, wire{e.Code, e.Message, data{e.Type, e.Details}}})
}

// Send writes a message as one line, in one write, so that concurrent answers do
// not mix. It ignores that the guest may be gone.
func (h *Host) Send(message any) {
	b, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	_, _ = h.conn.Write(append(b, '\n'))
}

// Tools returns the tools that most tests call.
func Tools() map[string]Tool {
	return map[string]Tool{
		"add": func(c Call) (any, error) {
			var in struct{ A, B float64 }
			if err := json.Unmarshal(c.Arguments, &in); err != nil {
				return nil, &Error{-32602, "invalid_params", err.Error(), nil}
			}
			return in.A + in.B, nil
		},
		"echo":     func(c Call) (any, error) { return c.Arguments, nil },
		"db.query": func(c Call) (any, error) { return []any{"db", c.Arguments}, nil },
		"say": func(c Call) (any, error) {
			var in struct{ Text string }
			return in.Text, errors.Join(json.Unmarshal(c.Arguments, &in))
		},
		"fail": func(c Call) (any, error) {
			message := `no "more","data":{"type":"x"` + "\nfor Bj\u00f6rn\\"
			return nil, &Error{-32000, "quota", message, map[string]int{"left": 0}}
		},
		"bytes": func(c Call) (any, error) { return []byte("a\x00b\xff"), nil },
		"null":  func(c Call) (any, error) { return nil, nil },
	}
}
