package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
)

type sum struct {
	A int `json:"a"`
	B int `json:"b,omitempty"`
}

// raw adds a tool without parameters.
func raw(s *broker.Set, name string, timeout time.Duration, call func(ctx context.Context) (json.RawMessage, error)) {
	s.AddRaw(broker.Tool{Name: name, Timeout: timeout, Call: func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		return call(ctx)
	}})
}

// policed returns a set with a tool of each kind, and what its Audit has received.
func policed(t *testing.T) (s *broker.Set, audited func() []broker.Record) {
	var mu sync.Mutex
	var records []broker.Record
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s = &broker.Set{
		Permit: func(_ context.Context, c broker.Call) error {
			switch c.FullName() {
			case "db.drop":
				return &broker.Error{Type: "Readonly", Message: "not today"}
			case "unlucky":
				panic("in Permit")
			}
			return nil
		},
		Audit: func(r broker.Record) {
			mu.Lock()
			defer mu.Unlock()
			records = append(records, r)
		},
	}
	value := func(v string, err error) func(context.Context) (json.RawMessage, error) {
		return func(context.Context) (json.RawMessage, error) { return json.RawMessage(v), err }
	}
	broker.Add(s, "add", "", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil })
	raw(s, "db.drop", 0, value("true", nil))
	raw(s, "unlucky", 0, value("true", nil))
	raw(s, "fail", 0, value("", &broker.Error{Type: "Quota", Message: "empty"}))
	raw(s, "garbage", 0, value("{", nil))
	raw(s, "latin1", 0, value("\"\xe9\"", nil))
	raw(s, "panic", 0, func(context.Context) (json.RawMessage, error) { panic("secret") })
	raw(s, "goexit", 0, func(context.Context) (json.RawMessage, error) { runtime.Goexit(); return nil, nil })
	raw(s, "deaf", time.Millisecond, func(context.Context) (json.RawMessage, error) { <-release; return nil, nil })
	raw(s, "null", 0, func(context.Context) (json.RawMessage, error) { return nil, nil })
	raw(s, "steps", 0, func(ctx context.Context) (json.RawMessage, error) { return nil, broker.Progress(ctx, 1) })
	return s, func() []broker.Record {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(records)
	}
}

// A call over any transport passes the same checks, and leaves one record.
func TestSetCall(t *testing.T) {
	for _, c := range []struct {
		name, tool, arguments string
		code                  broker.Code
		want                  string // the value, or a part of the message
	}{
		{"value", "add", `{"a":1,"b":2}`, 0, "3"},
		{"white space", "add", " \n{\"a\":1}", 0, "1"},
		{"nil value", "null", "", 0, "null"},
		{"progress without a receiver", "steps", "", 0, "null"},
		{"unknown tool", "sub", "", broker.CodeNotFound, `no tool "sub"`},
		{"wrong type", "add", `{"a":"1"}`, broker.CodeParams, "arguments of add: "},
		{"no object", "add", `[1]`, broker.CodeParams, "must be an object"},
		{"empty arguments", "add", " ", broker.CodeParams, "must be an object"},
		{"invalid JSON", "add", `{"a":"`, broker.CodeParams, "arguments of add: "},
		{"duplicate member", "add", `{"a":1,"a":2}`, broker.CodeParams, "duplicate member"},
		{"denied", "db.drop", "", broker.CodeDenied, "not today"},
		{"panic of the hook", "unlucky", "", broker.CodeInternal, "permission hook panicked"},
		{"failure", "fail", "", broker.CodeTool, "empty"},
		{"invalid value", "garbage", "", broker.CodeInternal, "garbage returned invalid JSON"},
		{"invalid UTF-8", "latin1", "", broker.CodeInternal, "latin1 returned invalid JSON"},
		{"panic", "panic", "", broker.CodeInternal, "tool panic panicked"},
		{"Goexit", "goexit", "", broker.CodeInternal, "tool goexit called runtime.Goexit"},
		{"a tool that ignores its context", "deaf", "", broker.CodeTimeout, "deaf: timed out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, audited := policed(t)
			call := broker.Call{ID: "7", Name: c.tool}
			if c.arguments != "" {
				call.Arguments = json.RawMessage(c.arguments)
			}
			value, err := s.Call(t.Context(), call)
			got := string(value)
			var own *broker.Error
			if errors.As(err, &own) {
				got = own.Message
			}
			if (err != nil) != (c.code != 0) || own != nil && own.Code != c.code || !strings.Contains(got, c.want) {
				t.Errorf("got %s, %v, want %s, %s", value, err, c.want, c.code)
			}
			records := audited()
			if len(records) != 1 || records[0].Code != c.code || records[0].ID != "7" || records[0].FullName() != c.tool {
				t.Errorf("audited %+v", records)
			}
			if panicked := strings.Contains(c.want, "panicked"); panicked != (records[0].Panic != "") {
				t.Errorf("panic on record: %q", records[0].Panic)
			}
		})
	}
}

// The end of the context ends the call at once, and is not the tool's failure.
func TestSetCallIsCanceled(t *testing.T) {
	s := new(broker.Set)
	called, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	raw(s, "deaf", 0, func(context.Context) (json.RawMessage, error) { close(called); <-release; return nil, nil })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-called; cancel() }()
	_, err := s.Call(ctx, broker.Call{Name: "deaf"})
	var own *broker.Error
	if !errors.As(err, &own) || own.Code != broker.CodeCanceled {
		t.Errorf("got %v", err)
	}
}

func TestProgress(t *testing.T) {
	s := new(broker.Set)
	raw(s, "steps", 0, func(ctx context.Context) (json.RawMessage, error) {
		return nil, errors.Join(broker.Progress(ctx, 1), broker.Progress(ctx, "two"))
	})
	var got []string
	ctx := broker.WithProgress(t.Context(), func(v json.RawMessage) error { got = append(got, string(v)); return nil })
	if _, err := s.Call(ctx, broker.Call{Name: "steps"}); err != nil || !slices.Equal(got, []string{"1", `"two"`}) {
		t.Errorf("got %q, %v", got, err)
	}
	if err := broker.Progress(t.Context(), 1); err == nil {
		t.Error("progress of no call")
	}
}

// Lookup applies the policy of the set and never crosses namespaces.
func TestLookup(t *testing.T) {
	for _, c := range []struct {
		pinned, allow   string
		namespace, name string
		want            string
	}{
		{"", "", "db", "query", "db.query"},
		{"", "", "", "db.query", "db.query"},
		{"", "", "", "query", ""},
		{"", "", "log", "db.query", ""},
		{"db", "", "", "query", "db.query"},
		{"db", "", "log", "query", ""},
		{"db", "", "", "add", ""},
		{"", "query", "log", "query", "log.query"},
		{"", "db.query", "log", "query", ""},
		{"", "db.query", "", "add", ""},
	} {
		s := &broker.Set{Namespace: c.pinned}
		if c.allow != "" {
			s.Allow = []string{c.allow}
		}
		for _, name := range []string{"add", "db.query", "log.query"} {
			raw(s, name, 0, func(context.Context) (json.RawMessage, error) { return nil, nil })
		}
		tool, err := s.Lookup(c.namespace, c.name)
		var own *broker.Error
		if tool.Name != c.want || (c.want == "") != (errors.As(err, &own) && own.Code == broker.CodeNotFound) {
			t.Errorf("%+v: got %q, %v", c, tool.Name, err)
		}
	}
}
