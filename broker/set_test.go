package broker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/broker"
)

// Err reports each kind of invalid tool and policy.
func TestSetErr(t *testing.T) {
	ok := func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	for name, c := range map[string]struct {
		set  func(s *broker.Set)
		want string
	}{
		"a name":   {func(s *broker.Set) { s.AddRaw(broker.Tool{Name: "1x", Call: ok}) }, `tool "1x": not a name`},
		"two dots": {func(s *broker.Set) { s.AddRaw(broker.Tool{Name: "a.b.c", Call: ok}) }, `tool "a.b.c": not a name`},
		"twice": {func(s *broker.Set) {
			s.AddRaw(broker.Tool{Name: "x", Call: ok})
			s.AddRaw(broker.Tool{Name: "x", Call: ok})
		}, `tool "x": added twice`},
		"no function": {func(s *broker.Set) { s.AddRaw(broker.Tool{Name: "x"}) }, `tool "x": function is nil`},
		"nil":         {func(s *broker.Set) { broker.Add[struct{}, int](s, "x", "", nil) }, `tool "x": function is nil`},
		"schema":      {func(s *broker.Set) { s.AddRaw(broker.Tool{Name: "x", Call: ok, Schema: json.RawMessage("{")}) }, `tool "x": schema is not valid JSON`},
		"bad schema":  {func(s *broker.Set) { s.AddRaw(broker.Tool{Name: "x", Call: ok, Schema: json.RawMessage(`{"type":7}`)}) }, `tool "x": schema: `},
		"no struct":   {func(s *broker.Set) { broker.Add(s, "x", "", func(context.Context, int) (int, error) { return 0, nil }) }, `tool "x": argument type int: want a struct or a map`},
		"a channel": {func(s *broker.Set) {
			broker.Add(s, "x", "", func(context.Context, struct{ C chan int }) (int, error) { return 0, nil })
		}, `tool "x": `},
		"allow":     {func(s *broker.Set) { s.Allow = []string{"y"} }, `allowed tool "y": no such tool`},
		"namespace": {func(s *broker.Set) { s.Namespace = "y" }, `namespace "y": no tool is in it`},
	} {
		s := new(broker.Set)
		c.set(s)
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
