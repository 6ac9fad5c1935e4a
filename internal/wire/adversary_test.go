package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

type panicky struct{}

func (panicky) MarshalJSON() ([]byte, error) { panic("never marshal me") }

func TestErrorDataThatIsNoJSON(t *testing.T) {
	for name, data := range map[string]any{"NaN": math.NaN(), "a channel": make(chan int), "a panic": panicky{}, "bad raw JSON": json.RawMessage("{")} {
		t.Run(name, func(t *testing.T) {
			s := sample()
			broker.Add(s, "odd", "", func(context.Context, struct{}) (int, error) {
				return 0, &broker.Error{Type: "Odd", Message: "odd", Data: data}
			})
			s.Permit = func(_ context.Context, c broker.Call) error {
				if c.Name == "add" {
					return &broker.Error{Type: "Odd", Message: "odd", Data: data}
				}
				return nil
			}
			d := talk(t, s, broker.Limits{})
			r := d.ask("tools/call", `{"name":"odd"}`)
			d.refused(r, broker.CodeTool, "odd")
			if r.Error == nil || r.Error.Data.Type != "Odd" || r.Error.Data.Details != nil {
				t.Errorf("got %+v", r.Error)
			}
			d.refused(d.ask("tools/call", `{"name":"add","arguments":{"a":1}}`), broker.CodeDenied, "odd")
		})
	}
}

func TestRecordedErrorsAreBounded(t *testing.T) {
	s := sample()
	broker.Add(s, "echo", "", func(_ context.Context, in struct{ S string }) (int, error) { return 0, errors.New(in.S) })
	d := talk(t, s, broker.Limits{Frame: 256 << 10})
	long := strings.Repeat("é", 100<<10)
	for range 3 {
		d.refused(d.ask("tools/call", `{"name":"add","arguments":{"a":"`+long+`"}}`), broker.CodeParams, "")
		d.refused(d.ask("tools/call", `{"name":"echo","arguments":{"S":"`+long+`"}}`), broker.CodeTool, long)
	}
	kept := 0
	for _, c := range d.run.End().Calls {
		kept += len(c.Error)
		if !strings.Contains(c.Error, "éé") {
			t.Errorf("nothing of an error is on record: %q", c.Error)
		}
	}
	if kept > 64<<10 {
		t.Errorf("%d bytes of errors are on record", kept)
	}
}

func TestEndWhileTheGuestDoesNotRead(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	s := sample()
	s.Permit = func(context.Context, broker.Call) error {
		close(asked)
		<-release
		return nil
	}
	d := talk(t, s, broker.Limits{})
	d.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}}`)
	<-asked
	ended := make(chan wire.Report)
	go func() { ended <- d.run.End() }()
	select {
	case rep := <-ended:
		if len(rep.Calls) != 1 || rep.Calls[0].Code != broker.CodeCanceled {
			t.Errorf("report %+v", rep)
		}
	case <-time.After(10 * time.Second):
		t.Error("End waits for the guest to read")
	}
	_ = d.conn.Close()
	close(release)
}

func TestAuditThatEndsItsGoroutine(t *testing.T) {
	s := sample()
	s.Audit = func(broker.Record) { runtime.Goexit() }
	d := talk(t, s, broker.Limits{})
	for range 3 {
		d.refused(d.ask("tools/call", `{"name":"nothing"}`), broker.CodeNotFound, "")
		d.refused(d.ask("tools/call", `{"name":"add","arguments":{"a":1}}`), 0, "")
		d.refused(d.ask("tools/call", `{"name":"goexit"}`), broker.CodeInternal, "")
	}
	closed := make(chan struct{})
	go func() { _ = d.link.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close does not return")
	}
}

func TestMembersTwice(t *testing.T) {
	type inner struct {
		Mode string `json:"mode,omitempty"`
		N    int    `json:"n,omitempty"`
	}
	s := sample()
	s.AddRaw(broker.Tool{
		Name:   "raw",
		Schema: json.RawMessage(`{"type":"object","properties":{"o":{"type":"object","properties":{"mode":{"enum":["safe"]}}},"l":{"type":"array"}}}`),
		Call: func(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) {
			var in struct {
				O inner   `json:"o"`
				L []inner `json:"l"`
			}
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, err
			}
			return json.Marshal(in)
		},
	})
	d := talk(t, s, broker.Limits{})
	for _, arguments := range []string{
		`{"o":{"mode":"evil"},"o":{"n":1}}`,
		`{"o":{"mode":"evil","mode":"safe"}}`,
		`{"o":{"mode":"evil","\u006dode":"safe"}}`,
		`{"l":[{"mode":"evil","mode":"safe"}]}`,
		`{"l":[[{"x":[1,{"a":1}],"x":1}]]}`,
	} {
		d.refused(d.ask("tools/call", `{"name":"raw","arguments":`+arguments+`}`), broker.CodeParams, "duplicate member")
	}
	for _, arguments := range []string{`{"o":{"mode":"safe"},"l":[{"n":1},{"n":2}]}`, `{"x":"a,\"b\":{","y":{"x":{"x":[]}},"":1}`, ` { } `} {
		d.refused(d.ask("tools/call", `{"name":"raw","arguments":`+arguments+`}`), 0, "")
	}
}

func TestCallsRacingTheEnd(t *testing.T) {
	for range 200 {
		var over, late atomic.Bool
		s := new(broker.Set)
		s.Permit = func(context.Context, broker.Call) error {
			if over.Load() {
				late.Store(true)
			}
			return nil
		}
		entered := make(chan struct{}, 100)
		broker.Add(s, "wait", "", func(ctx context.Context, _ struct{}) (int, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return 0, nil
		})
		host, guest := net.Pipe()
		link := wire.NewLink(host, broker.Limits{AtOnce: 2})
		run, err := link.Start(t.Context(), s, wire.Job{})
		if err != nil {
			t.Fatal(err)
		}
		var talking sync.WaitGroup
		talking.Go(func() { _, _ = io.Copy(io.Discard, guest) })
		talking.Go(func() {
			fmt.Fprintf(guest, `{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"token":%q}}`+"\n", link.Token())
			for i := 1; ; i++ {
				if _, err := fmt.Fprintf(guest, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait"}}`+"\n", i); err != nil {
					return
				}
			}
		})
		<-entered
		<-entered
		run.End()
		over.Store(true)
		_ = link.Close()
		talking.Wait()
		if late.Load() {
			t.Fatal("the hook was asked after the end")
		}
	}
}

func TestMembersInAnotherCase(t *testing.T) {
	type inner struct {
		Mode string `json:"mode,omitempty"`
	}
	s := sample()
	broker.Add(s, "nest", "", func(_ context.Context, in struct {
		O inner            `json:"o,omitzero"`
		L []inner          `json:"l,omitempty"`
		M map[string]inner `json:"m,omitempty"`
	}) (int, error) {
		return 0, nil
	})
	d := talk(t, s, broker.Limits{})
	for _, c := range []string{
		`"add","arguments":{"a":1,"A":2}`, `"add","arguments":{"a":1,"B":2}`, `"nest","arguments":{"O":{}}`, `"nest","arguments":{"o":{"MODE":"x"}}`,
		`"nest","arguments":{"l":[{"Mode":"x"}]}`, `"nest","arguments":{"m":{"x":{"mode":"a","mod\u0045":"x"}}}`, `"nest","arguments":{"ſ":1}`,
	} {
		d.refused(d.ask("tools/call", `{"name":`+c+`}`), broker.CodeParams, "additional properties")
	}
	d.refused(d.ask("tools/call", `{"name":"nest","arguments":{"m":{"a":{},"A":{}}}}`), 0, "")
}

func TestManyValuesTakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside atomic.Int32
		s := new(broker.Set)
		broker.Add(s, "hold", "", func(ctx context.Context, in struct{ L []struct{} }) (int, error) {
			inside.Add(1)
			<-ctx.Done()
			return 0, nil
		})
		d := talk(t, s, broker.Limits{Frame: 256 << 10})
		go func() {
			objects := strings.Repeat("{},", 500)
			for i := range 20 { // until the host does not read any more
				if _, err := fmt.Fprintf(d.conn, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"hold","arguments":{"L":[%s{}]}}}`+"\n", i, objects); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if n := inside.Load(); n == 0 || n > 8 {
			t.Errorf("%d calls at once", n)
		}
	})
}
