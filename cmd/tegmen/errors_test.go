package main

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
)

func TestMessage(t *testing.T) {
	invalid := func(text string) error { return fmt.Errorf("%w: %s", engine.ErrInvalid, text) }
	unsupported := &engine.UnsupportedError{Feature: "limit cpus=2", Remedy: "leave the limit out (degrade cpus)"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{io.ErrUnexpectedEOF, "unexpected EOF"},
		{&engine.Error{Op: "compile", Err: invalid("workspace /x: not a directory")}, "--workspace /x: not a directory"},
		{&engine.Error{Op: "compile", Err: errors.Join(invalid(`name "/": no`), invalid("limit cpu set: no"))},
			`--name "/": no; --cpuset-cpus: no`},
		{&engine.Error{Op: "compile", Err: invalid("rootless: no")}, "rootless: no"},
		{&engine.Error{Op: "compile", Err: invalid("limit memory by cgroup: no")}, "limit memory by cgroup: no"},
		{&engine.Error{Op: "compile", Err: invalid("root")}, "root"},
		{&engine.Error{Op: "compile", Err: unsupported},
			"--cpus=2: not supported here; leave the limit out (--degrade cpus)"},
		{&engine.Error{Op: "start sandbox", Path: "label", Err: unsupported},
			"--cpus=2: not supported here; leave the limit out (--degrade cpus)"},
		{&engine.Error{Op: "start sandbox", Err: syscall.EIO}, "start sandbox: input/output error"},
		{&engine.Error{Op: "start command", Path: "p", Err: invalid("setuid")}, `start command "p": setuid`},
		{errors.Join(&engine.Error{Op: "compile", Err: invalid("root /x: no")}, io.EOF), "--rootfs /x: no; EOF"},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

// Help, completion and the parser agree on the flags of each command.
func TestFlagsAreListedOnce(t *testing.T) {
	for _, name := range sandboxing {
		listed := make(map[string]int)
		for _, s := range new(options).flagSet(name).sections {
			for _, h := range s.flags {
				for _, n := range h.names {
					listed[dashed(n)]++
				}
			}
		}
		for _, f := range flagsOf(name) {
			if listed[f] != 1 {
				t.Errorf("%s: the help lists %s %d times", name, f, listed[f])
			}
			delete(listed, f)
		}
		if len(listed) > 0 {
			t.Errorf("%s: the help lists %v, which are not flags", name, listed)
		}
	}
}
