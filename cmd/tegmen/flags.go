package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// options are the flags of the commands that make a sandbox: a Spec, and what the
// command itself does.
type options struct {
	spec    engine.Spec
	base    engine.Spec // what spec was before the flags: the file's
	workdir string

	specFile string // "" is none

	parent string    // directory in which to make the sandbox's cgroup
	scope  bool      // ask systemd for one
	stdout io.Writer // nil: ours

	interactive, tty bool
	json, explain    bool
	calls            bool
	commit           bool
	diff             string
	readOnly         bool
	network          string
	code             codeOptions
	overlay          overlayResult
}

// errHelp is a request for help that has been answered.
var errHelp = errors.New("help")

// flags are the flags of one command, in the order and under the headings of its help.
type flags struct {
	*flag.FlagSet
	sections []section
	given    []func() error // set what the flags of the command line say, in their order
}

type section struct {
	title string
	flags []flagHelp
}

type flagHelp struct {
	names        []string
	value, usage string // value is "" if it takes none
}

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

// in starts a section of the help.
func (f *flags) in(title string) { f.sections = append(f.sections, section{title: title}) }

func (f *flags) list(h flagHelp) {
	last := &f.sections[len(f.sections)-1]
	last.flags = append(last.flags, h)
}

// value defines a flag that takes a value. set is called after --spec has been read.
func (f *flags) value(value, usage string, set func(string) error, names ...string) {
	f.list(flagHelp{names, value, usage})
	for _, n := range names {
		f.Func(n, usage, func(v string) error {
			f.given = append(f.given, func() error {
				if err := set(v); err != nil {
					return fmt.Errorf("%s %q: %w", dashed(n), v, err)
				}
				return nil
			})
			return nil
		})
	}
}

// text defines a flag whose value is taken as it is.
func (f *flags) text(p *string, value, usage, name string) {
	f.value(value, usage, func(v string) error { *p = v; return nil }, name)
}

// yes defines a flag without a value.
func (f *flags) yes(p *bool, usage string, names ...string) {
	f.list(flagHelp{names: names, usage: usage})
	for _, n := range names {
		f.BoolFunc(n, usage, func(v string) error {
			set, err := strconv.ParseBool(v)
			if err != nil {
				return errors.New("use true or false")
			}
			*p = set
			f.given = append(f.given, func() error { *p = set; return nil }) // --spec may have changed it
			return nil
		})
	}
}

// parse reads flags up to "--" or the first argument that is not a flag.
func (o *options) parse(name string, args []string) (rest []string, err error) {
	f := o.flagSet(name)
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

// print is the help.
func (f *flags) print() {
	for _, s := range f.sections {
		fmt.Printf("\n%s:\n", s.title)
		for _, h := range s.flags {
			var names []string
			for _, n := range h.names {
				names = append(names, dashed(n))
			}
			fmt.Printf("  %s\n        %s\n", strings.TrimSpace(strings.Join(names, ", ")+" "+h.value), h.usage)
		}
	}
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func setTo[T any](p *T, parse func(string) (T, error)) func(string) error {
	return func(v string) (err error) {
		*p, err = parse(v)
		return err
	}
}

func appendTo[T any](p *[]T, parse func(string) (T, error)) func(string) error {
	return func(v string) error {
		one, err := parse(v)
		*p = append(*p, one)
		return err
	}
}
