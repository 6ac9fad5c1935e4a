// Command goguest is a guest written in Go: it calls a tool some times, and
// returns how long a call took at the median. With "contest" it takes turns with
// the same message over a socket pair to another process, and returns both.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/guest"
)

func main() {
	if os.Args[1] == "peer" {
		peer()
		return
	}
	c, err := guest.Dial()
	if err == nil {
		err = run(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(c *guest.Client) error {
	ctx := context.Background()
	if os.Args[1] == "contest" {
		return contest(ctx, c)
	}
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	var times []time.Duration
	for i := range n {
		var sum int
		start := time.Now()
		if err := c.Call(ctx, "add", map[string]int{"a": i, "b": 1}, &sum); err != nil || sum != i+1 {
			return fmt.Errorf("got %d, %w", sum, err)
		}
		times = append(times, time.Since(start))
	}
	if err := c.Call(ctx, "add", map[string]string{"a": "x"}, nil); !errors.Is(err, &guest.ToolError{Type: "invalid_params"}) {
		return fmt.Errorf("got %w", err)
	}
	var steps []string
	value, err := c.Do(ctx, guest.Request{Name: "ns.steps", Progress: func(v json.RawMessage) { steps = append(steps, string(v)) }})
	if err != nil || string(value) != `"done"` || !slices.Equal(steps, []string{"1", "2"}) {
		return fmt.Errorf("got %s, %v, %w", value, steps, err)
	}
	slices.Sort(times)
	return c.Result(times[n/2].Nanoseconds())
}

// peer sends back what it is sent, as a Go program does it at best.
func peer() {
	far := os.NewFile(3, "far")
	buf := make([]byte, 4096)
	for {
		n, err := far.Read(buf)
		if err != nil {
			return
		}
		_, _ = far.Write(buf[:n]) // the other side sees that it does not come
	}
}

func contest(ctx context.Context, c *guest.Client) error {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for _, fd := range fds {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return err
		}
	}
	near, far := os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
	peer := exec.Command("/proc/self/exe", "peer")
	peer.ExtraFiles = []*os.File{far}
	if err := peer.Start(); err != nil {
		return err
	}
	defer func() { _, _ = near.Close(), peer.Wait() }()
	in := bufio.NewReader(near)
	bare := func(i int) error {
		line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": map[string]any{"name": "add", "arguments": map[string]int{"a": i, "b": 1}}})
		if err != nil {
			return err
		}
		if _, err := near.Write(append(line, '\n')); err != nil {
			return err
		}
		if line, err = in.ReadSlice('\n'); err != nil {
			return err
		}
		var reply struct{ ID int }
		return json.Unmarshal(line, &reply)
	}
	call := func(i int) error {
		var sum int
		return c.Call(ctx, "add", map[string]int{"a": i, "b": 1}, &sum)
	}
	const rounds, each = 60, 50
	var times [2][]time.Duration
	for range rounds {
		for k, f := range []func(int) error{call, bare} {
			start := time.Now()
			for i := range each {
				if err := f(i); err != nil {
					return err
				}
			}
			times[k] = append(times[k], time.Since(start)/each)
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	return c.Result([]time.Duration{times[0][rounds/2], times[1][rounds/2]})
}
