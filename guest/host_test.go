package guest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"
)

// clientHost is a small host: it answers by the wire in the very form that the
// broker does, and keeps what it was asked.
type clientHost struct {
	conn  *os.File
	job   any
	tools map[string]clientTool // by "name" or "namespace.name"
	limit int

	mu      sync.Mutex
	calls   []clientCall
	results []json.RawMessage // the parameters of result
	cancels []json.RawMessage
	busy    sync.WaitGroup
	done    chan struct{} // closed when the guest has closed
}

type clientTool func(call clientCall) (any, error)

type clientCall struct {
	ID        json.RawMessage
	Name      string
	Arguments json.RawMessage
	Progress  bool
	Canceled  chan struct{} // closed when it is
	Notify    func(value any)
}

type clientError struct {
	Code          int
	Type, Message string
	Details       any
}

func (e *clientError) Error() string { return e.Message }

// clientPair is a socket pair: the guest's end, and a host on the other.
func clientPair(t testing.TB, tools map[string]clientTool) (*os.File, *clientHost) {
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
	h := &clientHost{conn: os.NewFile(uintptr(fds[1]), "host"), tools: tools, limit: 8 << 20, done: make(chan struct{})}
	return os.NewFile(uintptr(fds[0]), "guest"), h
}

// serve answers until the guest has closed.
func (h *clientHost) serve(t testing.TB) {
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

func (h *clientHost) request(line []byte, canceled map[string]chan struct{}) {
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
	case len(line) > h.limit:
		h.fail(nil, &clientError{-32007, "too_large", "a line is longer than a frame may be", nil})
		return
	case !utf8.Valid(line) || json.Unmarshal(line, &m) != nil || json.Unmarshal(line, &raw) != nil:
		h.fail(nil, &clientError{-32700, "parse_error", "not JSON", nil})
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m.Method {
	case "hello":
		if m.Params.Token != "secret" {
			h.fail(m.ID, &clientError{-32001, "unauthorized", "wrong token", nil})
			return
		}
		h.answer(m.ID, h.job)
	case "result":
		h.results = append(h.results, raw.Params)
		if len(h.results) > 1 {
			h.fail(m.ID, &clientError{-32008, "completed", "the run has its result", nil})
			return
		}
		h.answer(m.ID, struct{}{})
	case "cancel":
		h.cancels = append(h.cancels, m.Params.ID)
		if c := canceled[string(m.Params.ID)]; c != nil {
			close(c)
			delete(canceled, string(m.Params.ID))
		}
	case "tools/call":
		name := m.Params.Name
		if m.Params.Namespace != "" {
			name = m.Params.Namespace + "." + name
		}
		call := clientCall{ID: m.ID, Name: name, Arguments: m.Params.Arguments, Progress: m.Params.Progress, Canceled: make(chan struct{})}
		call.Notify = func(value any) {
			h.send(map[string]any{"jsonrpc": "2.0", "method": "progress", "params": map[string]any{"id": m.ID, "value": value}})
		}
		canceled[string(m.ID)] = call.Canceled
		h.calls = append(h.calls, call)
		h.busy.Go(func() { h.serveCall(call) })
	default:
		h.fail(m.ID, &clientError{-32601, "method_not_found", "no such method", nil})
	}
}

func (h *clientHost) serveCall(call clientCall) {
	tool := h.tools[call.Name]
	if tool == nil {
		h.fail(call.ID, &clientError{-32002, "not_found", fmt.Sprintf("no tool %q", call.Name), nil})
		return
	}
	value, err := tool(call)
	var e *clientError
	switch {
	case errors.As(err, &e):
		h.fail(call.ID, e)
	case err != nil:
		h.fail(call.ID, &clientError{-32000, "tool_error", err.Error(), nil})
	default:
		if raw, ok := value.(shRaw); ok {
			_, _ = fmt.Fprintf(h.conn, `{"jsonrpc":"2.0","id":%s,"result":{"value":%s}}`+"\n", call.ID, raw)
			return
		}
		h.answer(call.ID, map[string]any{"value": value})
	}
}

func (h *clientHost) answer(id json.RawMessage, result any) {
	h.send(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}

func (h *clientHost) fail(id json.RawMessage, e *clientError) {
	type data struct {
		Type    string `json:"type"`
		Details any    `json:"details,omitempty"`
	}
	type wire struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    data   `json:"data"`
	}
	h.send(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   wire            `json:"error"`
	}{"2.0", id, wire{e.Code, e.Message, data{e.Type, e.Details}}})
}

// send is one write, so that answers do not mix; a guest that has gone does not
// want it.
func (h *clientHost) send(message any) {
	b, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	_, _ = h.conn.Write(append(b, '\n'))
}

// clientTools are what most dialogues call.
func clientTools() map[string]clientTool {
	return map[string]clientTool{
		"add": func(c clientCall) (any, error) {
			var in struct{ A, B float64 }
			if err := json.Unmarshal(c.Arguments, &in); err != nil {
				return nil, &clientError{-32602, "invalid_params", err.Error(), nil}
			}
			return in.A + in.B, nil
		},
		"echo":     func(c clientCall) (any, error) { return c.Arguments, nil },
		"db.query": func(c clientCall) (any, error) { return []any{"db", c.Arguments}, nil },
		"say": func(c clientCall) (any, error) {
			var in struct{ Text string }
			return in.Text, errors.Join(json.Unmarshal(c.Arguments, &in))
		},
		"fail": func(c clientCall) (any, error) {
			return nil, &clientError{-32000, "quota", `no "more","data":{"type":"x"` + "\nfor Bj\u00f6rn\\", map[string]int{"left": 0}}
		},
		"bytes": func(c clientCall) (any, error) { return []byte("a\x00b\xff"), nil },
		"null":  func(c clientCall) (any, error) { return nil, nil },
	}
}
