package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// options are the flags of the commands that make a sandbox: a Spec, and what the
// command itself does.
type options struct {
	program string // as it was given; "" if it was not
	args    []string
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
	console          *console // nil: the guest does not have the terminal
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
