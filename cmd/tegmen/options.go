package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/tegmen-dev/tegmen/engine"
)

// flagSet defines the flags of a command; help and completion list the same sets.
func (o *options) flagSet(name string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	o.specFlag(f)
	if name == "code" {
		o.codeFlags(f)
	}
	o.fileFlags(f)
	o.programFlags(f)
	o.limitFlags(f)
	o.cgroupFlags(f)
	o.isolationFlags(f)
	o.outputFlags(f)
	return f
}

// parse reads flags up to "--" or the first argument that is not a flag.
func (o *options) parse(name string, args []string) (rest []string, err error) {
	f := o.flagSet(name)
	if name == "shell" {
		for _, same := range []string{"i", "t", "it", "ti", "interactive", "tty"} { // what it does anyway
			f.BoolFunc(same, "", func(string) error { return nil })
		}
	}
	if name == "run" {
		for _, both := range []string{"it", "ti"} { // as people type -i -t; no flag to list
			f.BoolFunc(both, "", func(string) error { o.interactive, o.tty = true, true; return nil })
		}
	}
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		f.print()
		return nil, errHelp
	case err != nil:
		return nil, fmt.Errorf("%s: %s; see tegmen %s --help", name, flagError(err), name)
	}
	readSpec := func() error { return o.readSpec(name) }
	for _, step := range slices.Concat([]func() error{readSpec}, f.given, []func() error{o.contradiction}) {
		if err := step(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return f.Args(), nil
}

// contradiction reports the first flags that do not go together. What a file says, the
// engine checks.
func (o *options) contradiction() error {
	allFlags := o.specFile == ""
	overlay := o.spec.FS.WorkspaceMode == engine.WorkspaceOverlay
	filtered := o.spec.Seccomp.NoExec || o.spec.Seccomp.Audit
	for _, c := range []struct {
		found bool
		what  string
	}{
		{o.network != "" && o.network != "none", fmt.Sprintf("--network %q: only none is supported", o.network)},
		{o.readOnly && o.spec.FS.Overlay, "--read-only and --overlay are mutually exclusive"},
		{allFlags && o.spec.FS.Overlay && o.spec.FS.Root == "",
			"--overlay needs --rootfs DIR: the host's directories are always read-only"},
		{allFlags && o.spec.FS.Upper != "" && !overlay, "--workspace DIR,upper=DIR needs mode=overlay"},
		{allFlags && o.spec.FS.Upper != "" && o.spec.Limits.Workspace != 0,
			"--workspace: leave out size= or upper=: nothing limits what is written to a directory on disk"},
		{(o.commit || o.diff != "") && !overlay, "--commit and --diff need --workspace DIR,mode=overlay"},
		{o.json && o.diff == "-", "--json prints to standard output: give --diff a file"},
		{o.json && o.calls, "--json and --calls are mutually exclusive"},
		{o.json && o.tty, "--json and -t are mutually exclusive: --json captures the output"},
		{o.json && o.code.value, "--json and --value are mutually exclusive: --json includes the value"},
		{o.scope && o.parent != "", "--systemd-scope and --cgroup-parent are mutually exclusive"},
		{allFlags && o.spec.Seccomp.Profile == engine.SeccompOff && filtered,
			"--no-exec and --audit need a filter: leave out --security-opt seccomp=off"},
	} {
		if c.found {
			return errors.New(c.what)
		}
	}
	return nil
}
