package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// The hooks see every call, and the log a panic's stack, which the guest does
// not.
func TestHooks(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	var log strings.Builder
	s := sample()
	s.Permit = func(_ context.Context, c broker.Call) error {
		switch c.Name {
		case "fail":
			return errors.New("not on a Sunday")
		case "late":
			panic("hook")
		}
		return nil
	}
	s.Audit = func(r broker.Record) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s %s %s", r.Name, r.Code, r.Arguments))
	}
	s.Log = slog.New(slog.NewTextHandler(writer(func(p []byte) { mu.Lock(); defer mu.Unlock(); log.Write(p) }), nil))
	d := talk(t, s, broker.Limits{})
	d.refused(d.ask("tools/call", `{"name":"add","arguments":{"a":5}}`), 0, "")
	d.refused(d.ask("tools/call", `{"name":"fail"}`), broker.CodeDenied, "not on a Sunday")
	d.refused(d.ask("tools/call", `{"name":"late"}`), broker.CodeInternal, "permission hook panicked")
	d.refused(d.ask("tools/call", `{"name":"panic"}`), broker.CodeInternal, "tool panic panicked")
	rep := d.run.End()
	mu.Lock()
	defer mu.Unlock()
	want := []string{`add code 0 {"a":5}`, "fail denied {}", "late internal_error {}", "panic internal_error {}"}
	slices.Sort(seen) // the guest goes on meanwhile
	if !slices.Equal(seen, want) {
		t.Errorf("audited %q, want %q", seen, want)
	}
	for _, w := range []string{"panic=secret", "policy_test.go", "run=" + rep.Run, "call=" + rep.Run + ".1", "tool=fail", "refused=denied"} {
		if !strings.Contains(log.String(), w) {
			t.Errorf("the log lacks %s:\n%s", w, log.String())
		}
	}
	if p := rep.Calls[3].Panic; !strings.HasPrefix(p, "secret\n") || !strings.Contains(p, "policy_test.go") && !strings.Contains(p, "wire_test.go") {
		t.Errorf("the record of the panic is %q", p)
	}
	if rep.Accepted != 2 {
		t.Errorf("%d accepted, want 2", rep.Accepted)
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// Which tools a run sees and may call, as in chuk.
func TestPolicy(t *testing.T) {
	query := func(ns string) string {
		return `{"name":"query","namespace":` + strconv.Quote(ns) + `,"arguments":{"sql":"x"}}`
	}
	bare := `{"name":"query","arguments":{"sql":"x"}}`
	for _, c := range []struct {
		name      string
		namespace string
		allow     []string
		params    string
		code      broker.Code
		listed    string
	}{
		{"chuk: another than the pinned", "db", nil, query("log"), broker.CodeNotFound, "db.query"},
		{"chuk: the pinned one's", "db", nil, bare, 0, "db.query"},
		{"chuk: none that was not named", "", nil, bare, broker.CodeNotFound, ""},
		{"chuk: the pinned one, named", "db", nil, query("db"), 0, "db.query"},
		{"pinned, and named with a dot", "db", nil, `{"name":"log.query","arguments":{"sql":"x"}}`, broker.CodeNotFound, "db.query"},
		{"no fall through to none", "db", nil, `{"name":"add","arguments":{"a":1}}`, broker.CodeNotFound, "db.query"},
		{"chuk: a qualified entry", "", []string{"db.query"}, query("db"), 0, "db.query"},
		{"chuk: and no other", "", []string{"db.query"}, query("log"), broker.CodeNotFound, "db.query"},
		{"chuk: a bare entry", "", []string{"query"}, query("log"), 0, "db.query log.query"},
		{"chuk: what is not allowed", "", []string{"query"}, `{"name":"add","arguments":{"a":1}}`, broker.CodeNotFound, "db.query log.query"},
		{"an empty list", "", []string{}, `{"name":"add","arguments":{"a":1}}`, broker.CodeNotFound, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sample()
			s.Namespace, s.Allow = c.namespace, c.allow
			d := talk(t, s, broker.Limits{})
			d.refused(d.ask("tools/call", c.params), c.code, "")
			var list struct {
				Tools []struct{ Name, Namespace string }
			}
			if err := json.Unmarshal(d.ask("tools/list", "{}").Result, &list); err != nil || list.Tools == nil {
				t.Fatal(err, list)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, strings.TrimPrefix(tool.Namespace+"."+tool.Name, "."))
			}
			if got := strings.Join(names, " "); c.listed != "" && got != strings.TrimSuffix(c.listed, "none") {
				t.Errorf("listed %q, want %q", got, c.listed)
			}
		})
	}
}

// A set with an error is refused before anything starts.
func TestInvalidSet(t *testing.T) {
	s := new(broker.Set)
	s.AddRaw(broker.Tool{Name: "1x"})
	host, guest := net.Pipe()
	link := wire.NewLink(host, broker.Limits{})
	if _, err := link.Start(t.Context(), s, wire.Job{}); err == nil || err.Error() != s.Err().Error() {
		t.Errorf("got %v", err)
	}
	_, _ = link.Close(), guest.Close()
}
