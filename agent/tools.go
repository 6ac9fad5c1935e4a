package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// Options limit the tools. The zero value of a field stands for its default; a negative
// value is invalid.
type Options struct {
	Timeout     time.Duration // for commands whose input has none; default 5 s
	MaxTimeout  time.Duration // the longest timeout that an input may ask for; default 10 minutes
	FileTimeout time.Duration // for each operation on a file; default 10 s
	Output      engine.Bytes  // of a command that is kept: its first quarter, its last three; default 64 KiB
	File        engine.Bytes  // the largest file that is written, patched or read whole; default 8 MiB
	Python      string        // the interpreter of RunPython: a name in PATH, or a path, inside; default "python3"
}

// Tools work in one sandbox, which its owner closes. They may be used concurrently.
// Changes of files exclude each other, so that concurrent patches are not lost.
//
// Errors wrap engine.ErrInvalid for invalid input, engine.ErrClosed if the sandbox has
// ended, fs.ErrNotExist and fs.ErrPermission for files, and context.Canceled.
type Tools struct {
	box    *engine.Sandbox
	o      Options
	shells []program // those that exist, in order of preference
	sh     []string  // the shell for our own scripts, and its arguments up to -c
	python string    // the interpreter's path inside; "" if there is none
	edits  chan struct{}

	placeholders map[string]bool // engine.Plan.Placeholders
}

// program is a program found in PATH, inside.
type program struct{ name, path string }

// shellNames lists shells in the order of preference.
var shellNames = []string{"bash", "sh", "zsh", "dash"}

// Bind returns tools for a sandbox, after finding out which shells it has. A sandbox
// without Spec.Keep is refused with engine.ErrInvalid, since it would end with the first
// command that times out, and one without a shell with engine.ErrUnsupported.
func Bind(ctx context.Context, box *engine.Sandbox, o Options) (*Tools, error) {
	if !box.Plan().Spec.Keep {
		return nil, &engine.Error{Op: "bind tools", Err: invalid("the sandbox needs Spec.Keep: " +
			"without it, the first command that times out ends the sandbox")}
	}
	t := &Tools{box: box, o: o.withDefaults(), edits: make(chan struct{}, 1), placeholders: make(map[string]bool)}
	for _, at := range box.Plan().Placeholders() {
		t.placeholders[at] = true
	}
	if min(t.o.Timeout, t.o.MaxTimeout, t.o.FileTimeout) < 0 || min(t.o.Output, t.o.File) < 0 {
		return nil, &engine.Error{Op: "bind tools", Err: invalid("an option is negative")}
	}
	if err := t.discover(ctx); err != nil {
		return nil, &engine.Error{Op: "bind tools", Err: err}
	}
	return t, nil
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxTimeout = max(cmp.Or(o.MaxTimeout, 10*time.Minute), o.Timeout)
	o.FileTimeout = cmp.Or(o.FileTimeout, 10*time.Second)
	o.Output = cmp.Or(o.Output, 64*engine.KiB)
	o.File = cmp.Or(o.File, 8*engine.MiB)
	o.Python = cmp.Or(o.Python, "python3")
	return o
}

// interpreters can run our own scripts, which are POSIX sh.
var interpreters = [][]string{{"sh", "-c"}, {"dash", "-c"}, {"bash", "-c"}, {"zsh", "--emulate", "sh", "-c"}}

// lookAlong prints the path of each of its arguments in PATH. It does not use
// "command -v", which in busybox may report a builtin. The @ distinguishes its answers
// from what a start-up file prints.
const lookAlong = `for p; do
	rest=$PATH:
	case $p in */*) rest=${p%/*}: p=${p##*/}; esac
	while [ -n "$rest" ]; do
		at=${rest%%:*}/$p
		rest=${rest#*:}
		[ -f "$at" ] && [ -x "$at" ] && printf '@%s=%s\n' "$p" "$at" && break
	done
done
:`

// discover finds the shells and Python, with whichever shell there is.
func (t *Tools) discover(ctx context.Context) error {
	for _, sh := range interpreters {
		args := append(append(sh[1:len(sh):len(sh)], lookAlong, "sh"), shellNames...)
		cmd := t.box.CommandContext(ctx, sh[0], append(args, t.o.Python)...)
		cmd.Wall = t.o.FileTimeout
		out, err := cmd.Output()
		var missing *engine.ExecError
		if errors.As(err, &missing) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for shells: %w", err)
		}
		found := make(map[string]string)
		for line := range strings.Lines(string(out)) {
			name, at, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			if ok && strings.HasPrefix(name, "@") && path.IsAbs(at) {
				found[name[1:]] = at
			}
		}
		for _, name := range shellNames {
			if at := found[name]; at != "" {
				t.shells = append(t.shells, program{name, at})
			}
		}
		t.sh, t.python = sh, found[path.Base(t.o.Python)]
		break
	}
	if len(t.shells) == 0 {
		return &engine.UnsupportedError{
			Feature: "a sandbox without a shell",
			Remedy:  "none of " + strings.Join(shellNames, ", ") + " is in the PATH of the sandbox",
		}
	}
	return nil
}

// Shells lists the names of the sandbox's shells; the first is the default.
func (t *Tools) Shells() []string {
	names := make([]string, len(t.shells))
	for i, s := range t.shells {
		names[i] = s.name
	}
	return names
}

// inside returns a path for a program that starts where commands start, in a form that
// cannot be taken for an option. It is not cleaned, since the kernel inside must resolve
// ".." after a symbolic link.
func inside(p string) (string, error) {
	switch {
	case p == "":
		return "", invalid("no path")
	case strings.ContainsRune(p, 0):
		return "", invalid("the path contains a NUL byte")
	case path.IsAbs(p):
		return p, nil
	}
	return "./" + p, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", engine.ErrInvalid, fmt.Sprintf(format, args...))
}
