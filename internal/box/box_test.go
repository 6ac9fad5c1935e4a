package box

import (
	"errors"
	"io/fs"
	"reflect"
	"testing"
)

// Since subtracts what grows, and keeps what is the most so far or a fact.
func TestUsageSince(t *testing.T) {
	kept := map[string]bool{"By": true, "Memory": true, "Pids": true, "Empty": true, "OwnOOM": true}
	var now, before Usage
	fill := func(u *Usage, n int64) {
		for _, f := range reflect.ValueOf(u).Elem().Fields() {
			switch f.Kind() {
			case reflect.Bool:
				f.SetBool(true)
			default:
				f.SetInt(n)
			}
		}
	}
	fill(&now, 10)
	fill(&before, 3)
	v := reflect.ValueOf(now.Since(before))
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		want := int64(7)
		if kept[name] {
			want = 10
		}
		if f := v.Field(i); f.Kind() != reflect.Bool && f.Int() != want || f.Kind() == reflect.Bool && !f.Bool() {
			t.Errorf("%s is %v, want %d", name, f, want)
		}
	}
}

func TestErrors(t *testing.T) {
	err := error(&ExecError{Name: "x", Err: fs.ErrNotExist})
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != `exec "x": file does not exist` {
		t.Errorf("got %v", err)
	}
	if err := Invalid("a %d", 1); !errors.Is(err, ErrInvalid) || err.Error() != "invalid: a 1" {
		t.Errorf("got %v", err)
	}
}

func TestWatchAny(t *testing.T) {
	for _, c := range []struct {
		w    Watch
		want bool
	}{
		{Watch{Memory: Unlimited, Pids: Unlimited, Kill: true}, false},
		{Watch{Memory: 1, Pids: Unlimited}, true},
		{Watch{Memory: Unlimited, Pids: 1}, true},
	} {
		if got := c.w.Any(); got != c.want {
			t.Errorf("%+v: %v", c.w, got)
		}
	}
}
