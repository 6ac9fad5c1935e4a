package agent

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// Options bound what the tools do. Zero is the default of each.
type Options struct {
	Timeout     time.Duration // of a command whose input names none; default 5 s
	MaxTimeout  time.Duration // more is refused; default 10 minutes
	FileTimeout time.Duration // of work on a file; default 10 s
	Output      engine.Bytes  // of a command's text: the first quarter and the last three are kept; default 64 KiB
	File        engine.Bytes  // the largest file that is written, patched or read whole; default 8 MiB
	Python      string        // what RunPython runs: a name in PATH, or a path, inside; default "python3"
}

// Tools work in one sandbox, which its owner closes. They may be used
// concurrently; what changes files goes one after another, so that two
// patches do not lose each other.
//
// Errors are engine.ErrInvalid for input that cannot be, engine.ErrClosed when
// the sandbox has ended, fs.ErrNotExist and fs.ErrPermission for files, and
// context.Canceled.
type Tools struct {
	box    *engine.Sandbox
	o      Options
	shells []program // those that exist, in order of preference
	sh     []string  // runs our own scripts: a shell and its arguments up to -c
	python string    // its path inside; "" means that there is none
	edits  chan struct{}

	placeholders map[string]bool // engine.Plan.Placeholders
}

// program is one that was found in PATH, inside.
type program struct{ name, path string }

// shellNames is the order in which shells are preferred.
var shellNames = []string{"bash", "sh", "zsh", "dash"}

// Bind makes the tools of a sandbox, and looks once which shells it has. A
// sandbox without Spec.Keep is refused as engine.ErrInvalid, since it would end
// with the first command that takes too long; so is one without a shell.
func Bind(ctx context.Context, box *engine.Sandbox, o Options) (*Tools, error) {
	if !box.Plan().Spec.Keep {
		return nil, &engine.Error{Op: "bind tools", Err: invalid("the sandbox needs Spec.Keep, without which it ends with the first command that times out")}
	}
	t := &Tools{box: box, o: o.withDefaults(), edits: make(chan struct{}, 1), placeholders: make(map[string]bool)}
	for _, at := range box.Plan().Placeholders() {
		t.placeholders[at] = true
	}
	for _, d := range []time.Duration{t.o.Timeout, t.o.MaxTimeout, t.o.FileTimeout, time.Duration(t.o.Output), time.Duration(t.o.File)} {
		if d < 0 {
			return nil, &engine.Error{Op: "bind tools", Err: invalid("a negative option")}
		}
	}
	if err := t.discover(ctx); err != nil {
		return nil, &engine.Error{Op: "bind tools", Err: err}
	}
	return t, nil
}

func (o Options) withDefaults() Options {
	o.Timeout = orDefault(o.Timeout, 5*time.Second)
	o.MaxTimeout = max(orDefault(o.MaxTimeout, 10*time.Minute), o.Timeout)
	o.FileTimeout = orDefault(o.FileTimeout, 10*time.Second)
	o.Output = orDefault(o.Output, 64*engine.KiB)
	o.File = orDefault(o.File, 8*engine.MiB)
	o.Python = orDefault(o.Python, "python3")
	return o
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// interpreters run our own scripts, which are POSIX sh.
var interpreters = [][]string{{"sh", "-c"}, {"dash", "-c"}, {"bash", "-c"}, {"zsh", "--emulate", "sh", "-c"}}

// lookAlong prints where PATH has each of its arguments. It looks for itself,
// because "command -v" of a busybox may answer for what is built in. The mark
// keeps what a start-up file may print from being taken for an answer.
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

// discover runs inside whichever shell there is.
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
		return &engine.UnsupportedError{Feature: "a sandbox without a shell", Remedy: "none of " + strings.Join(shellNames, ", ") + " is in the PATH of the sandbox"}
	}
	return nil
}

// Shells names the shells that the sandbox has; the first is the default.
func (t *Tools) Shells() []string {
	names := make([]string, len(t.shells))
	for i, s := range t.shells {
		names[i] = s.name
	}
	return names
}

// inside is a path for a program that starts where commands do, and that takes
// it for nothing but a path. It is not cleaned: what ".." after a symbolic link
// means is for the kernel inside to say.
func inside(p string) (string, error) {
	switch {
	case p == "":
		return "", invalid("no path")
	case strings.ContainsRune(p, 0):
		return "", invalid("a path with a NUL byte")
	case path.IsAbs(p):
		return p, nil
	}
	return "./" + p, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", engine.ErrInvalid, fmt.Sprintf(format, args...))
}
