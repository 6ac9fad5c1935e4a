package wire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// pair is a socket pair as a sandbox has one.
func pair(b *testing.B) (host, guest *os.File) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	_ = syscall.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "guest")
}

// BenchmarkCall is a round trip from a guest that only writes and reads bytes;
// bare is the floor: the same lines, with no one thinking about them.
func BenchmarkCall(b *testing.B) {
	s := new(broker.Set)
	broker.Add(s, "add", "", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil })
	broker.Add(s, "length", "", func(_ context.Context, in struct {
		S string `json:"s"`
	}) (int, error) {
		return len(in.S), nil
	})
	for name, call := range map[string]string{
		"small": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}` + "\n",
		"1MiB":  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"length","arguments":{"s":"` + strings.Repeat("x", 1<<20) + `"}}}` + "\n",
	} {
		b.Run(name, func(b *testing.B) {
			host, guest := pair(b)
			link := wire.NewLink(host, broker.Limits{Calls: 1 << 40})
			run, err := link.Start(b.Context(), s, wire.Job{})
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(guest, `{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"token":%q}}`+"\n", link.Token())
			roundTrips(b, guest, call, 1)
			_ = link.Close()
			run.End()
			_ = guest.Close()
		})
		b.Run(name+"/bare", func(b *testing.B) {
			host, guest := pair(b)
			go func() {
				in := bufio.NewReaderSize(host, 1<<16)
				for {
					line, err := in.ReadBytes('\n')
					if err != nil {
						return
					}
					var v struct {
						Params struct{ Arguments json.RawMessage }
					}
					if len(line) < 1000 && json.Unmarshal(line, &v) != nil {
						return
					}
					_, _ = host.WriteString(`{"jsonrpc":"2.0","id":1,"result":{"value":3}}` + "\n")
				}
			}()
			roundTrips(b, guest, call, 0)
			_ = host.Close()
			_ = guest.Close()
		})
	}
}

func roundTrips(b *testing.B, guest *os.File, call string, skip int) {
	in := bufio.NewReaderSize(guest, 1<<16)
	for range skip {
		if _, err := in.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(call)))
	for b.Loop() {
		if _, err := guest.WriteString(call); err != nil {
			b.Fatal(err)
		}
		if line, err := in.ReadSlice('\n'); err != nil || strings.Contains(string(line), "error") {
			b.Fatalf("%s, %v", line, err)
		}
	}
}
