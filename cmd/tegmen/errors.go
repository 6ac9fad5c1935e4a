package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// flagNames are the flags behind the parts of a Spec that the engine's messages begin with.
var flagNames = []struct{ part, flag string }{
	{"root", "--rootfs"}, {"workspace", "--workspace"}, {"upper", "--workspace upper"},
	{"allow write", "--allow-write"}, {"environment", "--env"}, {"user", "--user"},
	{"hostname", "--hostname"}, {"name", "--name"}, {"variable", "--var"},
	{"require", "--require"}, {"degrade", "--degrade"},
	{"limit memory", "--memory"}, {"limit memoryhigh", "--memory-high"}, {"limit pids", "--pids-limit"},
	{"limit cpus", "--cpus"}, {"limit cpuset", "--cpuset-cpus"}, {"limit cpu set", "--cpuset-cpus"},
	{"limit cpuweight", "--cpu-weight"}, {"limit cpu weight", "--cpu-weight"}, {"limit io", "--device-…"},
	{"limit files", "--ulimit nofile"}, {"limit filesize", "--ulimit fsize"},
	{"limit cputime", "--ulimit cpu"}, {"limit addressspace", "--ulimit as"},
}

// inFlags are the same names where a message says what to do.
var inFlags = strings.NewReplacer("(degrade ", "(--degrade ", "(allow write ", "(--allow-write ",
	"(mount)", "(-v DIR:DIR:ro)")

// message is what went wrong, in one line and in the words of flags and files.
func message(err error) string {
	text := err.Error()
	var e *engine.Error
	if errors.As(err, &e) && (errors.Is(e.Err, engine.ErrInvalid) || errors.Is(e.Err, engine.ErrUnsupported)) {
		cause := problems(e.Err)
		if e.Op == "start command" { // the other operations are the engine's, not the user's
			cause = strings.TrimSuffix(e.Error(), e.Err.Error()) + cause
		}
		text = strings.Replace(text, e.Error(), cause, 1)
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

// problems are what errors.Join has put on a line each, without the sentinel's word.
func problems(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		line = strings.TrimPrefix(line, engine.ErrInvalid.Error()+": ")
		for _, n := range flagNames {
			rest, ok := strings.CutPrefix(line, n.part)
			if ok && strings.ContainsAny(rest[:min(1, len(rest))], " :=") && !strings.HasPrefix(rest, " by ") {
				line = n.flag + rest
				break
			}
		}
		lines[i] = inFlags.Replace(line)
	}
	return strings.Join(lines, "; ")
}

// startError blames --workdir for a directory that a command cannot start in.
func (o *options) startError(err error) error {
	var step *engine.StepError
	if errors.As(err, &step) && step.Call == "chdir" && o.workdir != "" && step.Path == o.workdir {
		return fmt.Errorf("--workdir %s: %w", o.workdir, step.Errno)
	}
	return err
}

// flagError is an error of package flag, which writes --name as -name.
func flagError(err error) string {
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		return "unknown flag " + dashed(name)
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return dashed(name) + " needs a value"
	}
	return err.Error()
}

// codeOf is the exit code for an error: who was at fault.
func codeOf(err error) int {
	var exec *engine.ExecError
	switch {
	case errors.As(err, &exec) && exec.NotFound:
		return exitNotFound
	case errors.As(err, &exec):
		return exitNotExec
	}
	return exitEngine
}
