package guest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/guest"
	"github.com/tegmen-dev/tegmen/internal/fakehost"
)

// clientDial is a client and its host.
func clientDial(t testing.TB, job string, tools map[string]fakehost.Tool, change func(*fakehost.Host)) (*guest.Client, *fakehost.Host) {
	t.Helper()
	conn, host := fakehost.New(t, tools)
	host.Job = json.RawMessage(job)
	if change != nil {
		change(host)
	}
	host.Serve(t)
	fd, err := syscall.Dup(int(conn.Fd())) // the client owns what it dials
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	t.Setenv("TEGMEN_FD", strconv.Itoa(fd))
	t.Setenv("TEGMEN_TOKEN", "secret")
	c, err := guest.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, host
}

const clientJob = `{"protocol":1,"run":"r1","namespace":"db","language":"go","code":"x","vars":{"n":[1]},"args":["a"],"limits":{"frame":100000},
	"tools":[{"name":"add","description":"adds","schema":{"type":"object"}},{"name":"query","namespace":"db","schema":{}},
	{"name":"bytes","schema":{},"output":{"type":"string","contentEncoding":"base64"}}]}`

func TestClientJob(t *testing.T) {
	c, _ := clientDial(t, clientJob, nil, nil)
	j := c.Job()
	if j.Run != "r1" || j.Code != "x" || string(j.Vars["n"]) != "[1]" || !slices.Equal(j.Args, []string{"a"}) || j.Limits.Frame != 100000 {
		t.Errorf("got %+v", j)
	}
	if tools := c.Tools(); len(tools) != 3 || tools[0].Description != "adds" || tools[1].Namespace != "db" || string(tools[0].Schema) != `{"type":"object"}` {
		t.Errorf("got %+v", tools)
	}
	for _, name := range []string{"TEGMEN_FD", "TEGMEN_TOKEN"} {
		if v, ok := os.LookupEnv(name); ok {
			t.Errorf("%s is still %q", name, v)
		}
	}
	if _, err := guest.Dial(); err == nil {
		t.Error("dialed twice")
	}
}

func TestClientCall(t *testing.T) {
	c, host := clientDial(t, clientJob, fakehost.Tools(), nil)
	ctx := t.Context()
	var sum float64
	if err := c.Call(ctx, "add", map[string]any{"a": 1, "b": 2}, &sum); err != nil || sum != 3 {
		t.Errorf("add: %v, %v", sum, err)
	}
	for _, name := range []string{"db.query", "query"} {
		var got []any
		if err := c.Call(ctx, name, struct{ SQL string }{"<x>"}, &got); err != nil || fmt.Sprint(got) != "[db map[SQL:<x>]]" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	var b []byte
	var v any
	if err := errors.Join(c.Call(ctx, "bytes", nil, &b), c.Call(ctx, "bytes", nil, &v)); err != nil || string(b) != "a\x00b\xff" {
		t.Errorf("bytes: %q, %v", b, err)
	}
	if vb, ok := v.([]byte); !ok || string(vb) != "a\x00b\xff" {
		t.Errorf("bytes in any: %#v", v)
	}
	v = 1
	if err := c.Call(ctx, "null", nil, &v); err != nil || v != nil {
		t.Errorf("null: %v, %v", v, err)
	}
	if value, err := c.Do(ctx, guest.Request{Name: "null"}); err != nil || string(value) != "null" {
		t.Errorf("null: %s, %v", value, err)
	}
	if calls := len(host.Calls()); calls != 7 {
		t.Errorf("the host has seen %d calls", calls)
	}
}

func TestClientErrors(t *testing.T) {
	c, host := clientDial(t, clientJob, fakehost.Tools(), nil)
	tests := []struct {
		name string
		in   any
		want guest.ToolError
	}{
		{"fail", nil, guest.ToolError{Code: -32000, Type: "quota", Message: `no "more","data":{"type":"x"` + "\nfor Bj\u00f6rn\\", Details: json.RawMessage(`{"left":0}`)}},
		{"nope.nope", nil, guest.ToolError{Code: -32002, Type: "not_found", Message: `no tool "nope.nope"`}},
		{"echo", strings.Repeat("x", 100000), guest.ToolError{Code: -32007, Type: "too_large", Message: "message of 100087 bytes exceeds the limit of 100000"}},
	}
	for _, test := range tests {
		err := c.Call(t.Context(), test.name, test.in, nil)
		var e *guest.ToolError
		if !errors.As(err, &e) || e.Code != test.want.Code || e.Type != test.want.Type || err.Error() != test.want.Message || !bytes.Equal(e.Details, test.want.Details) {
			t.Errorf("%s: got %#v", test.name, err)
		}
		if !errors.Is(err, &guest.ToolError{Type: test.want.Type}) || !errors.Is(err, &guest.ToolError{Code: test.want.Code}) ||
			errors.Is(err, &guest.ToolError{Type: "other"}) || errors.Is(err, &guest.ToolError{}) {
			t.Errorf("%s: Is", test.name)
		}
	}
	if n := len(host.Calls()); n != 2 {
		t.Errorf("the host has seen %d calls; the one that is too large was to stay", n)
	}
	if err := c.Call(t.Context(), "echo", make(chan int), nil); err == nil {
		t.Error("a channel was sent")
	}
}

func TestClientResult(t *testing.T) {
	tests := []struct {
		name string
		act  func(*guest.Client) error
		want string
		err  bool
	}{
		{"value", func(c *guest.Client) error { return c.Result([]int{1}) }, `{"run":"r1","value":[1]}`, false},
		{"null", func(c *guest.Client) error { return c.Result(nil) }, `{"run":"r1","value":null}`, false},
		{"error", func(c *guest.Client) error { return c.Fail(errors.New("bad")) }, `{"run":"r1","error":{"message":"bad","type":"error"}}`, false},
		{"tool error", func(c *guest.Client) error { return c.Fail(fmt.Errorf("x: %w", &guest.ToolError{Message: "bad"})) }, `{"run":"r1","error":{"message":"x: bad","type":"ToolError"}}`, false},
		{"too large", func(c *guest.Client) error { return c.Result(strings.Repeat("x", 200000)) }, `{"run":"r1","error":{"message":"message of 200076 bytes exceeds the limit of 100000","type":"too_large"}}`, true},
		{"twice", func(c *guest.Client) error { return errors.Join(c.Result(1), c.Result(2)) }, `{"run":"r1","value":1}`, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, host := clientDial(t, clientJob, nil, nil)
			if err := test.act(c); (err != nil) != test.err {
				t.Error(err)
			}
			if len(host.Results()) == 0 || string(host.Results()[0]) != test.want {
				t.Errorf("got %s, want %s", host.Results(), test.want)
			}
		})
	}
}

// Calls of many goroutines are under way at once, and each gets its own answer.
func TestClientConcurrentCalls(t *testing.T) {
	const n = 50
	var all sync.WaitGroup
	all.Add(n)
	tools := fakehost.Tools()
	tools["meet"] = func(c fakehost.Call) (any, error) {
		all.Done()
		all.Wait() // for all of them to be here
		return c.Arguments, nil
	}
	c, _ := clientDial(t, clientJob, tools, nil)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			var got int
			if err := c.Call(t.Context(), "meet", i, &got); err != nil || got != i {
				t.Errorf("got %d, %v, want %d", got, err, i)
			}
			for j := range 100 {
				var sum int
				if err := c.Call(t.Context(), "add", map[string]int{"a": i, "b": j}, &sum); err != nil || sum != i+j {
					t.Errorf("got %d, %v, want %d", sum, err, i+j)
				}
			}
		})
	}
	done.Wait()
}

// A call whose context ends is canceled on the host, whether it is the one that
// reads or not, and others go on.
func TestClientCancel(t *testing.T) {
	tools := fakehost.Tools()
	started, ended, release := make(chan string), make(chan string), make(chan struct{})
	tools["wait"] = func(c fakehost.Call) (any, error) {
		started <- string(c.Arguments)
		select {
		case <-c.Canceled:
			ended <- string(c.Arguments)
		case <-release:
		}
		return c.Arguments, nil
	}
	c, _ := clientDial(t, clientJob, tools, nil)
	var done sync.WaitGroup
	cancels := map[string]context.CancelFunc{}
	for i := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done.Go(func() {
			err := c.Call(ctx, "wait", i, nil)
			if want := i < 2; errors.Is(err, context.Canceled) != want || err == nil == want {
				t.Errorf("call %d: %v", i, err)
			}
		})
		cancels[<-started] = cancel
	}
	for i := range 2 { // the first reads for all
		id := strconv.Itoa(i)
		cancels[id]()
		if got := <-ended; got != id {
			t.Errorf("the host ended %s, want %s", got, id)
		}
		var sum int
		if err := c.Call(t.Context(), "add", map[string]int{"a": 1, "b": 2}, &sum); err != nil || sum != 3 {
			t.Errorf("got %d, %v", sum, err)
		}
	}
	close(release)
	done.Wait()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Call(gone, "add", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was canceled before: %v", err)
	}
}

func TestClientProgress(t *testing.T) {
	tools := map[string]fakehost.Tool{"steps": func(c fakehost.Call) (any, error) {
		if c.Progress {
			c.Notify(1)
			c.Notify("two")
		}
		return 3, nil
	}}
	c, _ := clientDial(t, clientJob, tools, nil)
	var got []string
	value, err := c.Do(t.Context(), guest.Request{Name: "steps", Progress: func(v json.RawMessage) { got = append(got, string(v)) }})
	if err != nil || string(value) != "3" || !slices.Equal(got, []string{"1", `"two"`}) {
		t.Errorf("got %v, %s, %v", got, value, err)
	}
}

// The end of the connection fails the calls that are under way, and later ones.
func TestClientEnd(t *testing.T) {
	closed := &guest.ToolError{Type: "canceled"}
	tools := fakehost.Tools()
	var started sync.WaitGroup
	started.Add(3)
	tools["wait"] = func(c fakehost.Call) (any, error) {
		started.Done()
		<-c.Canceled
		return nil, nil
	}
	var host *fakehost.Host
	c, _ := clientDial(t, clientJob, tools, func(h *fakehost.Host) { host = h })
	var done sync.WaitGroup
	for range 3 {
		done.Go(func() {
			if err := c.Call(t.Context(), "wait", nil, nil); !errors.Is(err, closed) {
				t.Error(err)
			}
		})
	}
	started.Wait()
	host.Close()
	done.Wait()
	if err := c.Call(t.Context(), "add", nil, nil); !errors.Is(err, closed) || err.Error() != "the host closed the connection" {
		t.Error(err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

func TestClientDialRefused(t *testing.T) {
	conn, host := fakehost.New(t, nil)
	host.Serve(t)
	fd, err := syscall.Dup(int(conn.Fd())) // which Dial closes: conn's own number could be another file's by then
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEGMEN_FD", strconv.Itoa(fd))
	t.Setenv("TEGMEN_TOKEN", "wrong")
	_, err = guest.Dial()
	if !errors.Is(err, &guest.ToolError{Type: "unauthorized"}) || err.Error() != "guest: hello: wrong token" {
		t.Error(err)
	}
}

// A large answer comes in many reads.
func TestClientLargeAnswer(t *testing.T) {
	want := strings.Repeat("<x>\u00e9", 1<<20)
	tools := map[string]fakehost.Tool{"large": func(fakehost.Call) (any, error) { return want, nil }}
	c, _ := clientDial(t, `{"limits":{"frame":33554432}}`, tools, nil)
	for range 3 {
		var got string
		if err := c.Call(t.Context(), "large", nil, &got); err != nil || got != want {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}

// Whatever the host sends, the client comes to an end.
func FuzzClientReads(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"limits":{"frame":50}}}` + "\n" + `{"jsonrpc":"2.0","id":2,"result":{"value":1}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":1}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"progress","params":{"id":1,"value":{}}}` + "\n\n\n" + `{"id":1,"result":null}` + "\n{\"id\":2}\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":99999999999999999999999,"result":{"value":}}` + "\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		host := os.NewFile(uintptr(fds[1]), "host")
		var writing sync.WaitGroup
		writing.Go(func() {
			_, _ = host.Write(input)
			_ = syscall.Shutdown(fds[1], syscall.SHUT_WR)
		})
		t.Setenv("TEGMEN_FD", strconv.Itoa(fds[0]))
		if c, err := guest.Dial(); err == nil {
			var v any
			_ = c.Call(t.Context(), "tool", nil, &v)
			_, _ = c.Do(t.Context(), guest.Request{Name: "tool", Progress: func(json.RawMessage) {}})
			_ = c.Result(1)
			c.Close()
		}
		writing.Wait()
		host.Close()
	})
}
