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

// Client is the connection of a program to its host. A program has one. All methods are
// safe for concurrent use.
type Client struct {
	conn  *os.File
	job   Job
	tools map[string]*clientTool // by name, with and without the pinned namespace

	sending sync.Mutex // held while writing a line

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*pending
	reader  *pending     // the request whose goroutine reads; nil: none does
	expired bool         // the read deadline has been set to the past
	err     error        // why reading has ended
	in      lines.Reader // used by the goroutine that reads
}

// clientTool describes a tool to its calls.
type clientTool struct {
	members string // name and namespace, as JSON
	bytes   bool   // the value is base64
}

// Job is what the host gives the program to do.
type Job struct {
	Run       string                     // id of the run
	Namespace string                     // the only one whose tools the run sees; "" means any
	Language  string                     // of Code; "" for a program that is no interpreter
	Code      string                     // to run, for an interpreter
	Vars      map[string]json.RawMessage // variables for Code; each value is JSON
	Args      []string                   // arguments for Code
	Stateful  bool                       // more jobs may follow, which Client does not receive
	Tools     []ToolInfo                 // that the run may call
	Limits    JobLimits                  // of the connection
}

// JobLimits are the limits of the connection.
type JobLimits struct {
	Frame int // bytes of a line in either direction; 0: the host did not say
}

// ToolInfo describes a tool.
type ToolInfo struct {
	Name        string          // within its namespace
	Namespace   string          // "" for a tool without one
	Description string          // for the author of the code
	Schema      json.RawMessage // JSON Schema of the arguments
	Output      json.RawMessage // JSON Schema of the value; nil: unknown
}

// ToolError is the error of a call that the host refused or the tool failed.
type ToolError struct {
	Code    int             // as in broker.Code: -32000 means that the tool failed
	Type    string          // the tool's choice, or the word for Code
	Message string          // for people
	Details json.RawMessage // the tool's data; nil if there is none
}

func (e *ToolError) Error() string { return e.Message }

// Is reports whether target is a *ToolError whose Type and Code are those of e or
// zero, but not both zero: errors.Is(err, &guest.ToolError{Type: "denied"}).
func (e *ToolError) Is(target error) bool {
	t, ok := target.(*ToolError)
	return ok && (t.Type == "" || t.Type == e.Type) && (t.Code == 0 || t.Code == e.Code) && (t.Type != "" || t.Code != 0)
}

// Request is a call with all its options.
type Request struct {
	Name      string // "query", or "db.query"
	Arguments any    // anything that marshals to a JSON object; nil means none
	// Progress receives what the tool reports during the call, in order, as JSON. It
	// must not wait for another call. nil: not asked for.
	Progress func(value json.RawMessage)
}

// Dial takes over the connection that TEGMEN_FD and TEGMEN_TOKEN name. It unsets both
// variables and sets close-on-exec, so children inherit neither the descriptor nor the
// token. The caller closes the client.
func Dial() (*Client, error) {
	fd, err := strconv.Atoi(os.Getenv("TEGMEN_FD"))
	if err != nil {
		return nil, errors.New("guest: TEGMEN_FD is not a descriptor: not started by a host, or Dial was called before")
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
	c.tools = make(map[string]*clientTool, len(c.job.Tools))
	for _, t := range c.job.Tools {
		name := t.Name
		if t.Namespace != "" {
			name = t.Namespace + "." + t.Name
		}
		r := &clientTool{members: toolcall.Members(name), bytes: toolcall.IsBytes(t.Output)}
		c.tools[name] = r
		if t.Namespace != "" && t.Namespace == c.job.Namespace && c.tools[t.Name] == nil {
			c.tools[t.Name] = r
		}
	}
	return nil
}

// Job returns what the host gives the program to do. Do not change it.
func (c *Client) Job() *Job { return &c.job }

// Tools returns the tools that the run may call. Do not change it.
func (c *Client) Tools() []ToolInfo { return c.job.Tools }

// Call calls a tool by its name, "db.query", with in as the arguments, and unmarshals
// the value into out. in and out may be nil. If the tool returns bytes, a *any receives
// a []byte. The error is a *ToolError, the error of ctx, or of encoding/json.
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

// Do calls a tool and returns its value as JSON. If ctx is done first, Do cancels the
// call on the host and returns ctx.Err().
func (c *Client) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	members := ""
	if t := c.tools[r.Name]; t != nil {
		members = t.members
	} else {
		members = toolcall.Members(r.Name) // unknown here: the host answers with an error
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
		return v[:len(v)-1], nil // value is the only member
	}
	var r struct{ Value json.RawMessage }
	err := json.Unmarshal(result, &r)
	return r.Value, err
}

// Result returns a value from the run. The first result counts. If the value is too
// large, the run fails with "too_large" and Result returns an error.
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

// Fail ends the run with an error instead of a value. The first result counts.
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

// Close closes the connection. Calls in flight fail. It is safe to call twice.
func (c *Client) Close() error {
	if err := c.conn.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
