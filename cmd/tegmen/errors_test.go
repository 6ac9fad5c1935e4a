package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
)

func TestMessage(t *testing.T) {
	invalid := func(field, value, problem string) error {
		return &engine.InvalidError{Field: field, Value: value, Problem: problem}
	}
	compile := func(errs ...error) error { return &engine.Error{Op: "compile", Err: errors.Join(errs...)} }
	unsupported := &engine.UnsupportedError{Feature: "limit cpus=2", Remedy: "leave the limit out (degrade cpus)",
		Field: "limits.cpus", Value: "2"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{io.ErrUnexpectedEOF, "unexpected EOF"},
		{compile(invalid("fs.workspace", "/x", "not a directory")), "--workspace /x: not a directory"},
		{compile(invalid("name", `"/"`, "no"), invalid("limits.cpu_set", "", "no")), `--name "/": no; --cpuset-cpus: no`},
		{compile(invalid("fs.mounts[3].target", `"/"`, "no")), `mount "/": no`},
		{compile(invalid("limits.frame_bytes", "", "no")), "limits.frame_bytes: no"},
		{compile(invalid("", "", "root /x: no")), "root /x: no"},
		{compile(unsupported), "--cpus=2: not supported here; leave the limit out (--degrade cpus)"},
		{&engine.Error{Op: "start sandbox", Path: "label", Err: unsupported},
			"--cpus=2: not supported here; leave the limit out (--degrade cpus)"},
		{&engine.Error{Op: "start sandbox", Err: syscall.EIO}, "start sandbox: input/output error"},
		{&engine.Error{Op: "start command", Path: "p", Err: invalid("", "", "setuid")}, `start command "p": setuid`},
		{errors.Join(compile(invalid("fs.root", "/x", "no")), io.EOF), "--rootfs /x: no; EOF"},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

// A value that a file sets is blamed on the file, unless a flag has changed it.
func TestMessageNamesTheFile(t *testing.T) {
	base := engine.Spec{Hostname: "a b", FS: engine.FS{Workspace: "/x", AllowWrite: []string{"a"}}}
	spec := base
	spec.FS.Workspace, spec.FS.AllowWrite = "/y", []string{"a", "b"}
	o := options{base: base, spec: spec, specFile: "f.json"}
	for field, want := range map[string]string{
		"hostname": "f.json: hostname", "fs.workspace": "--workspace", "user": "--user", "": "",
		"fs.allow_write[0]": "f.json: fs.allow_write[0]", "fs.allow_write[1]": "--allow-write",
		"fs.allow_write[2]": "--allow-write", "limits.io[0].device": "--device-…",
	} {
		b := new(blamed)
		if errors.As(o.blame(io.EOF), &b); b.nameOf(field) != want {
			t.Errorf("%s: %s, want %s", field, b.nameOf(field), want)
		}
	}
}

// Each flag behind a field exists.
func TestFieldFlags(t *testing.T) {
	known := append(flagsOf("run"), flagsOf("code")...)
	for field, name := range fieldFlags {
		first, _, _ := strings.Cut(name, " ")
		if strings.HasPrefix(first, "-") && !strings.HasSuffix(first, "…") && !slices.Contains(known, first) {
			t.Errorf("%s: no flag %s", field, first)
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
