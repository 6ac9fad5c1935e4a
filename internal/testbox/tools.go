//go:build unix

package testbox

import (
	"context"

	"github.com/tegmen-dev/tegmen/broker"
)

// Pair is two numbers, which Adders add.
type Pair struct {
	A int `json:"a"` // any
	B int `json:"b"` // any
}

// Adders returns a set with one tool, add.
func Adders() *broker.Set {
	s := new(broker.Set)
	broker.Add(s, "add", "Adds two numbers.", func(_ context.Context, in Pair) (int, error) { return in.A + in.B, nil })
	return s
}

// Hang returns a set with one tool, hang, that sends on calls and waits for the end of its context.
func Hang() (s *broker.Set, calls <-chan struct{}) {
	c := make(chan struct{}, 10)
	s = new(broker.Set)
	broker.Add(s, "hang", "", func(ctx context.Context, _ struct{}) (int, error) {
		c <- struct{}{}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	return s, c
}
