//go:build linux

package conformance_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// Running code as one of the tools that a model is offered.
func TestToolOfModels(t *testing.T) {
	box := testbox.Start(t, testbox.Open(t), engine.Spec{Keep: true})
	tools, err := agent.Bind(testbox.Within(t, testbox.Patience), box, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := func(s *broker.Set) (all []string) {
		for _, tool := range s.Tools() {
			all = append(all, tool.Name)
		}
		return all
	}
	t.Run("codecell: it is there once it is added, and not where it is not allowed", func(t *testing.T) {
		s := testbox.Adders()
		if got := strings.Join(names(s), " "); got != "add" {
			t.Errorf("before: %s", got)
		}
		tools.AddTo(s)
		if !slices.Contains(names(s), "run_python") || s.Err() != nil {
			t.Errorf("then: %s, %v", names(s), s.Err())
		}
		s.Allow = []string{"add", "read_file"}
		if got := strings.Join(names(s), " "); got != "add read_file" {
			t.Errorf("and then: %s", got)
		}
	})
	t.Run("codecell: twice is refused", func(t *testing.T) {
		s := new(broker.Set)
		tools.AddTo(s)
		tools.AddTo(s)
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), `tool "run_python": added twice`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("codecell: its parameter is code, and its answer what that prints", func(t *testing.T) {
		s := new(broker.Set)
		tools.AddTo(s)
		tool := s.Tools()[slices.Index(names(s), "run_python")]
		var schema struct {
			Properties map[string]struct{ Type string }
			Required   []string
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil || schema.Properties["code"].Type != "string" ||
			!slices.Equal(schema.Required, []string{"code"}) {
			t.Errorf("%s, %v", tool.Schema, err)
		}
		v, err := tool.Call(t.Context(), json.RawMessage(`{"code":"print(1 + 2)"}`))
		if err != nil || string(v) != `"3"` {
			t.Errorf("%s, %v", v, err)
		}
	})
}
