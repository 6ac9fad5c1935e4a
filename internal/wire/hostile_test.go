package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// What is no request gets an error, and the run goes on.
func TestGarbage(t *testing.T) {
	for _, c := range []struct {
		name, line string
		code       broker.Code
	}{
		{"no JSON", "garbage", broker.CodeParse},
		{"an empty line", "", broker.CodeParse},
		{"half of it", `{"jsonrpc":"2.0"`, broker.CodeParse},
		{"two on a line", `{"jsonrpc":"2.0","id":1,"method":"tools/list"} {}`, broker.CodeParse},
		{"NUL bytes", "\x00\x00", broker.CodeParse},
		{"no UTF-8", `{"jsonrpc":"2.0","id":1,"method":"` + "\xff" + `"}`, broker.CodeParse},
		{"nested 100,000 deep", strings.Repeat("[", 100_000), broker.CodeParse},
		{"nested deep and closed", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", broker.CodeParse},
		{"chuk: no object", `"hello"`, broker.CodeInvalidRequest},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`, broker.CodeInvalidRequest},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, broker.CodeInvalidRequest},
		{"no method", `{"jsonrpc":"2.0","id":1}`, broker.CodeInvalidRequest},
		{"a method that is none", `{"jsonrpc":"2.0","id":1,"method":7}`, broker.CodeInvalidRequest},
		{"no id", `{"jsonrpc":"2.0","method":"tools/list"}`, broker.CodeInvalidRequest},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, broker.CodeInvalidRequest},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, broker.CodeInvalidRequest},
		{"a long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 100) + `","method":"tools/list"}`, broker.CodeInvalidRequest},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":1,"result":{}}`, broker.CodeInvalidRequest},
		{"a long line", strings.Repeat("x", 300_000), broker.CodeTooLarge},
		{"a long request", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 300_000) + `"}}`, broker.CodeTooLarge},
		{"many values", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":[` + strings.Repeat("[", 9000), broker.CodeParse},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := talk(t, sample(), broker.Limits{Frame: 256 << 10})
			go d.send("%s", c.line)
			d.refused(d.must(), c.code, "")
			if r := d.ask("tools/call", `{"name":"add","arguments":{"a":1}}`); string(r.Result) != `{"value":1}` {
				t.Errorf("then got %s, %+v", r.Result, r.Error)
			}
		})
	}
}

// What talks nonsense is not listened to for ever, whether or not it reads.
func TestGarbageWithoutEnd(t *testing.T) {
	d := talk(t, sample(), broker.Limits{})
	go func() {
		for {
			if _, err := io.WriteString(d.conn, "garbage\n"); err != nil {
				return
			}
		}
	}()
	for n := 0; ; n++ {
		if _, err := d.read(); err != nil {
			if !errors.Is(err, io.EOF) || n > 200 {
				t.Errorf("after %d answers: %v", n, err)
			}
			break
		}
	}
	<-d.run.Done()
}

// A cancel that is none, or of nothing, does no harm.
func TestCancelOfNothing(t *testing.T) {
	d := talk(t, sample(), broker.Limits{})
	for _, params := range []string{`{}`, `{"id":7}`, `{"id":null}`, `{"id":{"a":1}}`} {
		d.send(`{"jsonrpc":"2.0","method":"cancel","params":%s}`, params)
	}
	if r := d.ask("tools/call", `{"name":"add","arguments":{"a":1}}`); string(r.Result) != `{"value":1}` {
		t.Errorf("got %s, %+v", r.Result, r.Error)
	}
}

// An id that is in use is refused, and the call that has it is answered.
func TestForgedIDs(t *testing.T) {
	d := talk(t, sample(), broker.Limits{})
	d.send(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"wait"}}`)
	d.send(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"add","arguments":{"a":1}}}`)
	d.refused(d.must(), broker.CodeInvalidRequest, `id "a" is in use`)
	d.send(`{"jsonrpc":"2.0","method":"cancel","params":{"id":"a"}}`)
	d.refused(d.must(), broker.CodeCanceled, "canceled by the guest")
}

// Thousands of lists are bounded.
func TestListsAreBounded(t *testing.T) {
	d := talk(t, sample(), broker.Limits{})
	go func() {
		for i := range 2000 {
			d.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i)
		}
	}()
	var refused int
	for range 2000 {
		if r := d.must(); r.code() == broker.CodeLimit {
			refused++
		}
	}
	if refused != 1000 {
		t.Errorf("%d refused, want 1000", refused)
	}
}

// The ceiling counts what is let through, and nothing else (chuk).
func TestCeiling(t *testing.T) {
	d := talk(t, sample(), broker.Limits{Calls: 2})
	add := `{"name":"add","arguments":{"a":1}}`
	for i, c := range []struct {
		params string
		want   broker.Code
	}{
		{`{"name":"nothing"}`, broker.CodeNotFound}, {`{"name":"add"}`, broker.CodeParams},
		{add, 0}, {`{"name":"fail"}`, broker.CodeTool}, {add, broker.CodeLimit}, {add, broker.CodeLimit},
	} {
		if r := d.ask("tools/call", c.params); r.code() != c.want {
			t.Errorf("call %d: %+v, want %s", i, r.Error, c.want)
		}
	}
	rep := d.run.End()
	if rep.Accepted != 2 || !rep.Exceeded || len(rep.Calls) != 6 || rep.Tools["add"].Calls != 1 || rep.Tools["fail"].Failed != 1 {
		t.Errorf("report %+v", rep)
	}
}

// After the result nothing is served, and what is being served is canceled.
func TestAfterTheResult(t *testing.T) {
	called := make(chan struct{})
	s := sample()
	broker.Add(s, "hang", "", func(ctx context.Context, _ struct{}) (any, error) {
		close(called)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	d := talk(t, s, broker.Limits{})
	d.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hang"}}`)
	<-called
	d.send(`{"jsonrpc":"2.0","id":8,"method":"result","params":{"value":[1]}}`)
	for range 2 {
		if r := d.must(); string(r.ID) == "7" {
			d.refused(r, broker.CodeCanceled, "the run has ended")
		} else if string(r.Result) != "{}" {
			t.Errorf("result answered by %s, %+v", r.Result, r.Error)
		}
	}
	<-d.run.Done()
	for method, params := range map[string]string{"tools/call": `{"name":"add","arguments":{"a":1}}`, "result": `{"value":2}`, "tools/list": `{}`} {
		d.refused(d.ask(method, params), broker.CodeCompleted, "run already completed")
	}
	if rep := d.run.End(); string(rep.Value) != "[1]" || rep.Error != nil {
		t.Errorf("report %+v", rep)
	}
}

// A tool that does not heed its context does not hold up the end.
func TestToolsThatDoNotReturn(t *testing.T) {
	stuck, release := make(chan struct{}), make(chan struct{})
	s := new(broker.Set)
	broker.Add(s, "stick", "", func(context.Context, struct{}) (int, error) {
		close(stuck)
		<-release
		return 0, nil
	})
	d := talk(t, s, broker.Limits{})
	d.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"stick"}}`)
	<-stuck
	go func() { _, _ = io.Copy(io.Discard, d.conn) }()
	rep := d.run.End()
	close(release)
	if len(rep.Calls) != 1 || rep.Calls[0].Code != broker.CodeCanceled {
		t.Errorf("report %+v", rep)
	}
}

// A guest that hangs up ends its calls.
func TestHalfClosed(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	_ = syscall.SetNonblock(fds[0], true)
	host, guest := os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "guest")
	defer guest.Close()
	called, ended := make(chan struct{}), make(chan error, 1)
	s := new(broker.Set)
	broker.Add(s, "wait", "", func(ctx context.Context, _ struct{}) (int, error) {
		close(called)
		<-ctx.Done()
		ended <- ctx.Err()
		return 0, ctx.Err()
	})
	link := wire.NewLink(host, broker.Limits{})
	defer link.Close()
	run, err := link.Start(t.Context(), s, wire.Job{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(guest, `{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"token":%q}}`+"\n", link.Token())
	fmt.Fprintln(guest, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`)
	<-called
	if err := syscall.Shutdown(fds[1], syscall.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	<-run.Done()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	run.End()
}

// A guest that sends long calls, and does not read, takes up no more of the host than a
// few frames.
func TestMemoryIsBounded(t *testing.T) {
	const frame = 4 << 20
	synctest.Test(t, func(t *testing.T) {
		s := new(broker.Set)
		broker.Add(s, "hold", "", func(ctx context.Context, in struct{ S string }) (int, error) {
			<-ctx.Done()
			return len(in.S), nil
		})
		d := talk(t, s, broker.Limits{Frame: frame, AtOnce: 64})
		filler := strings.Repeat("x", frame-200)
		before := heap()
		var sent atomic.Int32
		go func() {
			for n := range 64 {
				if _, err := fmt.Fprintf(d.conn, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"hold","arguments":{"S":%q}}}`+"\n", n, filler); err != nil {
					return
				}
				sent.Add(1)
			}
		}()
		synctest.Wait() // until the host has stopped reading
		if n := sent.Load(); n > 3 {
			t.Errorf("%d long calls were taken at once", n)
		}
		if grown := heap() - before; grown > 8*frame {
			t.Errorf("the host grew by %d frames", grown/frame)
		}
	})
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// 100 MB without an end of line are skipped, not kept.
func TestLongLineIsNotKept(t *testing.T) {
	d := talk(t, sample(), broker.Limits{Frame: 1 << 20})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range 100 {
			_, _ = d.conn.Write(chunk)
		}
		_, _ = d.conn.Write([]byte("\n"))
	}()
	d.refused(d.must(), broker.CodeTooLarge, "line longer than 1048576 bytes")
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d MiB were allocated for it", got>>20)
	}
}

// Arguments that decode to much more than they are long are refused.
func TestManyValues(t *testing.T) {
	d := talk(t, sample(), broker.Limits{})
	r := d.ask("tools/call", `{"name":"add","arguments":{"a":[`+strings.Repeat("0,", 1<<20)+`0]}}`)
	d.refused(r, broker.CodeTooLarge, "more than 262144 values")
	r = d.ask("tools/call", `{"name":"add","arguments":{"a":"`+strings.Repeat(`[,\"`, 1<<20)+`"}}`)
	d.refused(r, broker.CodeParams, "")
}

// Who is refused again and again is not listened to for ever.
func TestRefusalsAreBounded(t *testing.T) {
	d := talk(t, sample(), broker.Limits{})
	go func() {
		for {
			if _, err := io.WriteString(d.conn, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}`+"\n"); err != nil {
				return
			}
		}
	}()
	n := 0
	for ; n < 20_000; n++ {
		if _, err := d.read(); err != nil {
			break
		}
	}
	if n < 10_000 || n > 10_010 {
		t.Errorf("%d calls were refused one by one", n)
	}
}

// A guest cannot make the record grow, by refused calls or long names.
func TestReportIsBounded(t *testing.T) {
	d := talk(t, sample(), broker.Limits{Frame: 64 << 10})
	name := strings.Repeat("n", 60<<10)
	d.refused(d.ask("tools/call", `{"name":"add","arguments":{"a":1,"`+name+`":1}}`), broker.CodeParams, "")
	for i := range 1200 {
		if i == 100 {
			name = "nothing"
		}
		d.refused(d.ask("tools/call", `{"name":"`+name+`"}`), broker.CodeNotFound, "no tool")
	}
	rep := d.run.End()
	if len(rep.Calls) != 1000 || len(rep.Calls[0].Error) > 5000 || len(rep.Calls[1].Name) > 200 || len(rep.Calls[1].Error) > 300 {
		t.Errorf("%d calls on record, a name of %d bytes", len(rep.Calls), len(rep.Calls[0].Name))
	}
}

// What calls pass is on record, up to a frame's size of it.
func TestRecordedValuesAreBounded(t *testing.T) {
	d := talk(t, sample(), broker.Limits{Frame: 64 << 10})
	for _, n := range []int{1, 40_000, 40_000, 2} {
		d.refused(d.ask("tools/call", fmt.Sprintf(`{"name":"big","arguments":{"n":%d}}`, n)), 0, "")
	}
	rep := d.run.End()
	if len(rep.Calls) != 4 || string(rep.Calls[0].Value) != `"x"` || len(rep.Calls[1].Value) != 40_002 || rep.Calls[2].Value != nil || string(rep.Calls[3].Value) != `"xx"` {
		t.Errorf("%d calls; of the third is kept %.20s", len(rep.Calls), rep.Calls[min(2, len(rep.Calls)-1)].Value)
	}
}

// A job that does not fit into a frame is refused before the guest is there.
func TestLongCode(t *testing.T) {
	host, guest := net.Pipe()
	defer guest.Close()
	link := wire.NewLink(host, broker.Limits{})
	defer link.Close()
	_, err := link.Start(t.Context(), nil, wire.Job{Code: strings.Repeat("x", 10<<20)})
	var own *broker.Error
	if !errors.As(err, &own) || own.Code != broker.CodeTooLarge {
		t.Errorf("got %v", err)
	}
}
