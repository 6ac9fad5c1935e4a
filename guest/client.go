package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/tegmen-dev/tegmen/internal/lines"
	"github.com/tegmen-dev/tegmen/internal/toolcall"
)

// Client is the connection of a program to its host. All methods may be called
// at once by many goroutines. A program has one: descriptor 3.
type Client struct {
	conn  *os.File
	job   Job
	tools map[string]*clientRoute // by exact name

	sending sync.Mutex // held while a line is written

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*pending
	reader  *pending     // whose goroutine reads
	expired bool         // the read deadline is over
	err     error        // why nothing is read any more
	in      lines.Reader // of the goroutine that reads
}

// clientRoute is what a call of a tool begins with.
type clientRoute struct {
	members string // the name and the namespace, as JSON
	bytes   bool   // the value is base64
}

// Job is what the host has for the program.
type Job struct {
	Run       string
	Namespace string // the run sees nothing else
	Language  string
	Code      string
	Vars      map[string]json.RawMessage
	Args      []string
	Stateful  bool
	Tools     []ToolInfo
	Limits    struct {
		Frame int // bytes of a line
	}
}

// ToolInfo describes a tool. Schema is that of its arguments, Output of its
// value.
type ToolInfo struct {
	Name, Namespace, Description string
	Schema, Output               json.RawMessage
}

// ToolError is what a call fails with when it was not answered by a value.
type ToolError struct {
	Code    int             // as on the wire
	Type    string          // what the tool says of it, or the code's word
	Message string          // for people
	Details json.RawMessage // nil when there are none
}

func (e *ToolError) Error() string { return e.Message }

// Is says whether target is a ToolError and has no Type or Code but those of e,
// so that errors.Is(err, &guest.ToolError{Type: "denied"}) holds.
func (e *ToolError) Is(target error) bool {
	t, ok := target.(*ToolError)
	return ok && (t.Type == "" || t.Type == e.Type) && (t.Code == 0 || t.Code == e.Code) && (t.Type != "" || t.Code != 0)
}

func errClosed() error {
	return &ToolError{Code: -32006, Type: "canceled", Message: "the host closed the connection"}
}

// Request is a call with all that one may have.
type Request struct {
	Name      string // exact, "db.query"
	Arguments any    // marshals to an object; nil is none
	// Progress is told of what the tool reports meanwhile, in order. It must not
	// wait for another call.
	Progress func(value json.RawMessage)
}

// Dial takes the connection that the environment names, and takes it out of
// there: children have neither the descriptor nor the token.
func Dial() (*Client, error) {
	fd, err := strconv.Atoi(os.Getenv("TEGMEN_FD"))
	if err != nil {
		return nil, errors.New("guest: TEGMEN_FD names no descriptor: not started by a host, or dialed twice")
	}
	token := os.Getenv("TEGMEN_TOKEN")
	for _, name := range []string{"TEGMEN_FD", "TEGMEN_TOKEN"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("guest: %w", err)
		}
	}
	if err := own(fd); err != nil {
		return nil, fmt.Errorf("guest: descriptor %d: %w", fd, err)
	}
	c := &Client{conn: os.NewFile(uintptr(fd), "host"), waiting: map[uint64]*pending{}}
	c.in = lines.Reader{From: c.conn, Limit: maxFrame}
	if err := c.hello(token); err != nil {
		_ = c.conn.Close() // the error is that of hello
		return nil, fmt.Errorf("guest: hello: %w", err)
	}
	return c, nil
}

func (c *Client) hello(token string) error {
	params, err := json.Marshal(map[string]any{"protocol": 1, "token": token})
	if err != nil {
		return err
	}
	result, err := c.request(context.Background(), "hello", params, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(result, &c.job); err != nil {
		return err
	}
	if n := c.job.Limits.Frame; n > 0 {
		c.in.Limit = n
	}
	c.tools = make(map[string]*clientRoute, len(c.job.Tools))
	for _, t := range c.job.Tools {
		name := t.Name
		if t.Namespace != "" {
			name = t.Namespace + "." + t.Name
		}
		r := &clientRoute{members: toolcall.Members(name), bytes: toolcall.IsBytes(t.Output)}
		c.tools[name] = r
		if t.Namespace != "" && t.Namespace == c.job.Namespace && c.tools[t.Name] == nil {
			c.tools[t.Name] = r
		}
	}
	return nil
}

// Job is what the host has for the program. It is not to be changed.
func (c *Client) Job() *Job { return &c.job }

// Tools lists the tools there are. It is not to be changed.
func (c *Client) Tools() []ToolInfo { return c.job.Tools }

// Call calls a tool by its exact name, "db.query", and unmarshals the value into
// out unless that is nil. Bytes are a []byte, also where out is a *any. The error
// is a *ToolError, that of ctx, or of (un)marshaling.
func (c *Client) Call(ctx context.Context, name string, in, out any) error {
	value, err := c.Do(ctx, Request{Name: name, Arguments: in})
	if err != nil || out == nil || value == nil {
		return err
	}
	if r := c.tools[name]; r != nil && r.bytes && value[0] == '"' {
		if p, ok := out.(*any); ok {
			var b []byte
			if err := json.Unmarshal(value, &b); err != nil {
				return err
			}
			*p = b
			return nil
		}
	}
	return json.Unmarshal(value, out)
}

// Do calls a tool and returns its value as JSON, nil when there is none. When ctx
// is done first, the host is told that the call is not wanted any more.
func (c *Client) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	members := ""
	if t := c.tools[r.Name]; t != nil {
		members = t.members
	} else {
		members = toolcall.Members(r.Name) // the host says what it thinks of that
	}
	params := make([]byte, 0, 256)
	params = append(append(params, '{'), members...)
	if r.Arguments != nil {
		b, err := json.Marshal(r.Arguments)
		if err != nil {
			return nil, err
		}
		params = append(append(params, `,"arguments":`...), b...)
	}
	if r.Progress != nil {
		params = append(params, `,"progress":true`...)
	}
	result, err := c.request(ctx, "tools/call", append(params, '}'), r.Progress)
	if err != nil {
		return nil, err
	}
	return valueOf(result)
}

// valueOf cuts the value out of a result.
func valueOf(result json.RawMessage) (json.RawMessage, error) {
	if v, ok := bytes.CutPrefix(result, []byte(`{"value":`)); ok && len(v) > 1 {
		return v[:len(v)-1], nil // nothing stands after it
	}
	var r struct{ Value json.RawMessage }
	err := json.Unmarshal(result, &r)
	return r.Value, err
}

// Result gives the run its value; the first one counts. One that is too large
// fails the run.
func (c *Client) Result(value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	err = c.result("value", b)
	if errors.Is(err, &ToolError{Type: "too_large"}) {
		return errors.Join(err, c.failure("too_large", err.Error()))
	}
	return err
}

// Fail ends the run by an error instead of a value.
func (c *Client) Fail(err error) error {
	kind := "error"
	if t := (*ToolError)(nil); errors.As(err, &t) {
		kind = "ToolError"
	}
	return c.failure(kind, err.Error())
}

func (c *Client) failure(kind, message string) error {
	b, err := json.Marshal(map[string]string{"type": kind, "message": message})
	if err != nil {
		return err
	}
	return c.result("error", b)
}

func (c *Client) result(member string, value []byte) error {
	run, err := json.Marshal(c.job.Run)
	if err != nil {
		return err
	}
	params := append(append([]byte(`{"run":`), run...), `,"`+member+`":`...)
	_, err = c.request(context.Background(), "result", append(append(params, value...), '}'), nil)
	return err
}

// Close closes the connection. Calls that are under way fail. It is safe twice.
func (c *Client) Close() error {
	if err := c.conn.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
