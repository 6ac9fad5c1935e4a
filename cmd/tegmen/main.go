// Command tegmen runs code that nobody has read yet in a sandbox built only on kernel
// features. The README shows its use.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Exit codes besides the program's own. The README has the table.
const (
	exitTimeout  = 124 // the program reached --timeout and was killed
	exitKilled   = 137 // 128 + SIGKILL, which docker returns when memory runs out
	exitEngine   = 125 // tegmen failed or was called incorrectly
	exitNotExec  = 126 // the program exists in the sandbox but cannot be executed
	exitNotFound = 127 // the program does not exist in the sandbox
)

// command is a subcommand.
type command struct {
	name, usage, about string
	run                func(args []string) (code int, err error)
}

func commands() []command {
	return []command{
		{"run", "run [flags] [--] PROGRAM [ARG...]", "run a program in a new sandbox", runMain},
		{"code", "code [flags] [--lang LANG] -e CODE | FILE | - [ARG...]",
			"run code in a new sandbox and let it call tools on the host", codeMain},
		{"shell", "shell [flags]", "open a shell in a new sandbox on this terminal", shellMain},
		{"plan", "plan [--calls] [flags] [[--] PROGRAM [ARG...]]", "print what run would do with these flags", planMain},
		{"doctor", "doctor", "report what this kernel and account allow and how to enable the rest", doctorMain},
		{"seccomp", "seccomp show [PROFILE] | explain CALL [PROFILE] | check FILE",
			"print which system calls a profile allows and why; check a policy", seccompMain},
		{"held", "held [--restore | --drop] [DIR [PATH...]]",
			"list what was held back in a workspace, and restore it or drop it", heldMain},
		{"version", "version", "print the version", versionMain},
		{"completion", "completion bash|zsh|fish", "print a completion script for the shell", completionMain},
	}
}

// The main thread lives as long as the process, so it starts the sandbox.
func init() { runtime.LockOSThread() }

func main() { os.Exit(dispatch(os.Args[1:])) }

func dispatch(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return exitEngine
	}
	switch args[0] {
	case "help", "-h", "--help":
		if len(args) == 1 || args[0] != "help" || args[1] == "help" || strings.HasPrefix(args[1], "-") {
			usage(os.Stdout)
			return 0
		}
		args = []string{args[1], "--help"}
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
			fmt.Fprintln(os.Stderr, "tegmen:", message(err))
			return codeOf(err)
		}
		return code
	}
	fmt.Fprintf(os.Stderr, "tegmen: unknown command %q; %s\n", args[0], insteadOf(args))
	return exitEngine
}

// insteadOf is what to type for something that is not a command: a program or flags, as
// other sandboxes take them.
func insteadOf(args []string) string {
	first := args[0]
	switch {
	case first == "--" && len(args) > 1:
		return "to run a program, use tegmen run -- " + shellWord(args[1])
	case strings.HasPrefix(first, "-") && first != "--":
		return "name a command before its flags: tegmen run " + shellWord(first)
	}
	if _, err := exec.LookPath(first); err == nil || strings.Contains(first, "/") {
		return "to run a program, use tegmen run -- " + shellWord(first)
	}
	return "see tegmen help"
}

// shellWord is a word as a shell takes it, on one line.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=:,+@", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return fmt.Sprintf("%q", word)
}

func usage(w *os.File) {
	fmt.Fprint(w, "tegmen runs programs in a sandbox built only on kernel features.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  tegmen %s\n        %s\n", c.usage, c.about)
	}
	fmt.Fprint(w, "\nRun tegmen COMMAND --help to list its flags.\n")
}
