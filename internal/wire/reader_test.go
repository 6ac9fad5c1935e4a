package wire_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
)

// A tool that has been quick, and is not this time, holds up nobody: what comes
// after is read, a cancel too, and so is the end.
func TestQuickToolsThatWait(t *testing.T) {
	meeting := make(chan int)
	s := sample()
	broker.Add(s, "meet", "waits for another, when told to", func(ctx context.Context, in struct {
		Wait bool `json:"wait"`
		N    int  `json:"n"`
	}) (int, error) {
		if !in.Wait {
			return in.N, nil
		}
		select {
		case meeting <- in.N:
			return in.N, nil
		case n := <-meeting:
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	d := talk(t, s, broker.Limits{Calls: 10000})
	for range 3 {
		for i := range 20 {
			if r := d.ask("tools/call", fmt.Sprintf(`{"name":"meet","arguments":{"wait":false,"n":%d}}`, i)); string(r.Result) != fmt.Sprintf(`{"value":%d}`, i) {
				t.Fatalf("got %s, %+v", r.Result, r.Error)
			}
		}
		for i := range 2 {
			d.send(`{"jsonrpc":"2.0","id":"m%d","method":"tools/call","params":{"name":"meet","arguments":{"wait":true,"n":7}}}`, i)
		}
		for range 2 {
			if r := d.must(); string(r.Result) != `{"value":7}` {
				t.Fatalf("got %s, %+v", r.Result, r.Error)
			}
		}
		d.refused(d.ask("tools/call", `{"name":"sub"}`), broker.CodeNotFound, "")
		if r := d.ask("tools/call", `{"name":"meet","arguments":{"wait":false,"n":1}}`); r.code() != 0 {
			t.Fatalf("got %+v", r.Error)
		}
		d.send(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"meet","arguments":{"wait":true,"n":7}}}`)
		d.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":"c"}}`)
		d.refused(d.must(), broker.CodeCanceled, "canceled by the guest")
	}
	for range 3 {
		d.ask("tools/call", `{"name":"meet","arguments":{"wait":false,"n":1}}`)
	}
	d.send(`{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"meet","arguments":{"wait":true,"n":7}}}`)
	_ = d.conn.Close()
	select {
	case <-d.link.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the end was not seen")
	}
}

// A tool that ends the goroutine it is served on does not end the link.
func TestQuickToolThatEndsItsGoroutine(t *testing.T) {
	s := new(broker.Set)
	broker.Add(s, "leave", "", func(_ context.Context, in struct {
		Now bool `json:"now"`
	}) (int, error) {
		if in.Now {
			runtime.Goexit()
		}
		return 1, nil
	})
	d := talk(t, s, broker.Limits{})
	for range 3 {
		for range 5 {
			d.refused(d.ask("tools/call", `{"name":"leave","arguments":{"now":false}}`), 0, "")
		}
		d.refused(d.ask("tools/call", `{"name":"leave","arguments":{"now":true}}`), broker.CodeInternal, "called runtime.Goexit")
	}
}
