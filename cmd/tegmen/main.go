// Command tegmen runs programs that nobody has read yet in a sandbox made of
// nothing but the operating system. See the README for its use.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// Exit codes besides the program's own. The README has the table.
const (
	exitTimeout  = 124 // the program was killed at its wall clock limit
	exitKilled   = 137 // 128 + SIGKILL, as docker has it for want of memory
	exitEngine   = 125 // tegmen itself could not do it, or was called wrongly
	exitNotExec  = 126 // the program exists inside and cannot be executed
	exitNotFound = 127 // there is no such program inside
)

// command is a subcommand.
type command struct {
	name, usage, about string
	run                func(args []string) (code int, err error)
}

func commands() []command {
	return []command{
		{"run", "run [flags] [--] PROGRAM [ARG...]", "run a program in a new sandbox", runMain},
		{"code", "code [flags] [--lang LANG] -e CODE | FILE | - [ARG...]", "run a piece of code, which may call tools of the host", codeMain},
		{"shell", "shell [flags]", "open a shell in a new sandbox, on this terminal", shellMain},
		{"plan", "plan [--calls] [flags] [[--] PROGRAM [ARG...]]", "print what run would do with these flags", planMain},
		{"doctor", "doctor", "say what this kernel and account allow, and what to do about the rest", doctorMain},
		{"seccomp", "seccomp show [PROFILE] | explain CALL [PROFILE] | check FILE", "say which system calls a profile allows and why; check a policy", seccompMain},
		{"version", "version", "print the version", versionMain},
		{"completion", "completion bash|zsh|fish", "print a script that completes tegmen's commands and flags", completionMain},
	}
}

// The main thread, which lives as long as the process, starts the sandbox.
func init() { runtime.LockOSThread() }

func main() { os.Exit(dispatch(os.Args[1:])) }

func dispatch(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return exitEngine
	}
	switch args[0] {
	case "help", "-h", "--help":
		usage(os.Stdout)
		return 0
	case "--version":
		args[0] = "version"
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		if len(args) == 2 && (args[1] == "-h" || args[1] == "-help" || args[1] == "--help") {
			fmt.Printf("tegmen %s\n        %s\n", c.usage, c.about)
		}
		code, err := c.run(args[1:])
		if errors.Is(err, errHelp) {
			return 0
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "tegmen:", oneLine(err))
			return codeOf(err)
		}
		return code
	}
	fmt.Fprintf(os.Stderr, "tegmen: no command %q; see tegmen help\n", args[0])
	return exitEngine
}

// oneLine joins what is wrong: errors.Join puts each on a line of its own.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

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

func usage(w *os.File) {
	fmt.Fprint(w, "tegmen runs programs in a sandbox made of nothing but the operating system.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  tegmen %s\n        %s\n", c.usage, c.about)
	}
	fmt.Fprint(w, "\nFlags of a command: tegmen COMMAND --help\n")
}
