package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
)

// A Spec may be a file that nobody has read: what is wrong with it fits on a screen, and a
// list that is too long is refused without being read to its end.
func TestSpecErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("/", 4<<20)
	mounts := make([]engine.Mount, 100_000)
	degrade := make([]engine.Protection, 100_000)
	for name, s := range map[string]engine.Spec{
		"values":     {Name: long, Hostname: long, Limits: engine.Limits{CPUSet: long}, Env: []string{long}},
		"mounts":     {FS: engine.FS{Mounts: mounts}},
		"source":     {FS: engine.FS{Mounts: []engine.Mount{{Type: "bind", Source: "/x\x00" + long, Target: "/x"}}}},
		"degrade":    {Degrade: degrade},
		"allowwrite": {FS: engine.FS{Workspace: "/x", AllowWrite: []string{"../" + long}}},
		"type":       {FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountType(long), Target: "/x"}}}},
	} {
		err := s.Validate()
		if !errors.Is(err, engine.ErrInvalid) || len(err.Error()) > 10_000 {
			t.Errorf("%s: %d bytes: %.300s", name, len(err.Error()), err)
		}
	}
	_, err := engine.ParseSpec(strings.NewReader(`{"env":["A=1"` + strings.Repeat(`,"A=1"`, 400_000) + `]}`))
	var invalid *engine.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "env" || !strings.Contains(invalid.Problem, "more than 10000 elements") {
		t.Errorf("400,000 variables: %v", err)
	}
}

// A limit of memory that no program fits in was meant in another unit.
func TestMemoryFloor(t *testing.T) {
	for _, c := range []struct {
		limits engine.Limits
		ok     bool
	}{
		{engine.Limits{Memory: 64}, false},
		{engine.Limits{MemoryHigh: 64}, false},
		{engine.Limits{Memory: engine.MiB - 1}, false},
		{engine.Limits{Memory: engine.MiB}, true},
		{engine.Limits{MemoryHigh: engine.MiB}, true},
	} {
		if err := (engine.Spec{Limits: c.limits}).Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.limits, err)
		}
	}
}
