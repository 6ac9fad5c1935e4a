package guest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/guest"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// A program that calls a tool, looks at an error, and returns a value.
func Example() {
	run := hostFor(tools()) // package engine does this for a real guest

	c, err := guest.Dial()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx := context.Background()
	var sum int
	if err := c.Call(ctx, "math.add", map[string]int{"a": 1, "b": 2}, &sum); err != nil {
		fmt.Println(err)
	}
	fmt.Println("sum:", sum)
	if err := c.Call(ctx, "math.div", nil, nil); errors.Is(err, &guest.ToolError{Type: "not_found"}) {
		fmt.Println("no division:", err)
	}
	if err := c.Result(map[string]int{"sum": sum}); err != nil {
		fmt.Println(err)
	}

	fmt.Printf("the host received %s\n", run.End().Value)
	// Output:
	// sum: 3
	// no division: no tool "math.div"
	// the host received {"sum":3}
}

func tools() *broker.Set {
	s := new(broker.Set)
	broker.Add(s, "math.add", "Adds two numbers.", func(_ context.Context, in map[string]int) (int, error) {
		return in["a"] + in["b"], nil
	})
	return s
}

// hostFor serves a set to this process, and sets the variables that Dial reads.
func hostFor(s *broker.Set) *wire.Run {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = syscall.SetNonblock(fds[1], true)
	}
	if err != nil {
		panic(err)
	}
	link := wire.NewLink(os.NewFile(uintptr(fds[1]), "host"), broker.Limits{})
	run, err := link.Start(context.Background(), s, wire.Job{})
	if err != nil {
		panic(err)
	}
	os.Setenv("TEGMEN_FD", strconv.Itoa(fds[0]))
	os.Setenv("TEGMEN_TOKEN", link.Token())
	return run
}
