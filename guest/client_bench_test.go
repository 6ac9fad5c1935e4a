package guest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/guest"
)

// clientPeer answers every line at once, with the number of the line as its id.
func clientPeer(b *testing.B) int {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer syscall.Close(fds[1])
		buf := make([]byte, 4096)
		for id := 1; ; id++ {
			if n, err := syscall.Read(fds[1], buf); n <= 0 || err != nil {
				return
			}
			if _, err := syscall.Write(fds[1], fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"value":3}}`+"\n", id)); err != nil {
				return
			}
		}
	}()
	b.Cleanup(func() { <-ended })
	return fds[0]
}

type clientSum struct {
	A int `json:"a"`
	B int `json:"b"`
}

// clientBare makes the same exchange by hand.
func clientBare(b *testing.B) func() {
	fd := clientPeer(b)
	if err := syscall.SetNonblock(fd, true); err != nil {
		b.Fatal(err)
	}
	conn := os.NewFile(uintptr(fd), "bare")
	b.Cleanup(func() { conn.Close() })
	type params struct {
		Name      string    `json:"name"`
		Arguments clientSum `json:"arguments"`
	}
	type request struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  params `json:"params"`
	}
	r := bufio.NewReader(conn)
	id := 0
	return func() {
		id++
		line, err := json.Marshal(request{"2.0", id, "tools/call", params{"add", clientSum{1, 2}}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Write(append(line, '\n')); err != nil {
			b.Fatal(err)
		}
		line, err = r.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		var reply struct {
			ID     int
			Result struct{ Value int }
		}
		if err := json.Unmarshal(line, &reply); err != nil || reply.ID != id || reply.Result.Value != 3 {
			b.Fatal(string(line), err)
		}
	}
}

// Round trips, each beside one of the same message by hand: medians.
func BenchmarkClient(b *testing.B) {
	b.Setenv("TEGMEN_FD", strconv.Itoa(clientPeer(b)))
	c, err := guest.Dial()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	call := func(ctx context.Context) func() {
		return func() {
			var v int
			if err := c.Call(ctx, "add", clientSum{1, 2}, &v); err != nil || v != 3 {
				b.Fatal(v, err)
			}
		}
	}
	ways := []struct {
		name  string
		do    func()
		times []time.Duration
	}{{"call", call(context.Background()), nil}, {"cancelable", call(b.Context()), nil}, {"bare", clientBare(b), nil}}
	for b.Loop() {
		for i := range ways {
			start := time.Now()
			ways[i].do()
			ways[i].times = append(ways[i].times, time.Since(start))
		}
	}
	for _, w := range ways {
		slices.Sort(w.times)
		b.ReportMetric(float64(w.times[len(w.times)/2].Nanoseconds()), "ns/"+w.name)
	}
}
