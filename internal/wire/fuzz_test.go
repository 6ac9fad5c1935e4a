package wire_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// Whatever a guest says after its hello, it is answered in JSON, line by line,
// or hung up on; nothing is let through that was not asked for.
func FuzzDialogue(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"query","namespace":"db","arguments":{"sql":"x"},"progress":true}}`,
		`{"jsonrpc":"2.0","method":"cancel","params":{"id":1}}`,
		`{"jsonrpc":"2.0","id":2,"method":"result","params":{"value":[1,{"a":null}]}}` + "\n" + `{"jsonrpc":"2.0","id":3,"method":"result","params":{"error":{"type":"E","message":"m"}}}`,
		`{"jsonrpc":"2.0","id":-1.5e3,"method":"tools/list","params":{}}` + "\n[]\n\"\"\nnull\n{}",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"steps","progress":true}}`,
	} {
		f.Add([]byte(s))
	}
	set := sample()
	f.Fuzz(func(t *testing.T, said []byte) {
		host, guest := net.Pipe()
		link := wire.NewLink(host, broker.Limits{Frame: 16 << 10, Calls: 5})
		run, err := link.Start(t.Context(), set, wire.Job{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = guest.SetWriteDeadline(time.Now().Add(20 * time.Second))
			fmt.Fprintf(guest, `{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"token":%q}}`+"\n", link.Token())
			_, _ = guest.Write(append(said, '\n'))
			fmt.Fprintln(guest, `{"jsonrpc":"2.0","id":"last","method":"hello","params":{}}`)
		}()
		_ = guest.SetReadDeadline(time.Now().Add(20 * time.Second))
		in := bufio.NewReader(guest)
		for {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				break // hung up on
			}
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			var r reply
			if err := json.Unmarshal(line, &r); err != nil || len(line) > 16<<10 {
				t.Fatalf("answered %q: %v", line, err)
			}
			if string(r.ID) == `"last"` {
				break
			}
		}
		_ = guest.Close()
		_ = link.Close()
		if rep := run.End(); rep.Accepted > 5 {
			t.Errorf("%d calls", rep.Accepted)
		}
	})
}
