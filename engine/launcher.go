package engine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/seatbelt"
)

// This file is how a plan for macOS becomes command lines.

// launchShell starts commands: only a process itself can lower its limits. With -p
// it takes neither functions nor settings from the environment, which is the
// guest's. It is bash, since other shells cannot close a descriptor above 9.
var launchShell = []string{"/bin/bash", "-p", "-c"}

// closeOthers has a shell close all descriptors above one. Those of this process
// that are not to be inherited are closed anyhow; others may have been opened
// without that, by C code for one (CVE-2024-21626 was one such descriptor).
func closeOthers(last int) string {
	return fmt.Sprintf(`for REPLY in /dev/fd/*; do
	REPLY=${REPLY##*/}
	case $REPLY in *[!0-9]*) echo 'descriptors are not listed in /dev/fd' >&2; exit 1 ;; esac
	[ "$REPLY" -le %d ] || eval "exec $REPLY>&-"
done`, last)
}

// real is where a program really is: rules see real paths.
func real(program string) string {
	if at, err := filepath.EvalSymlinks(program); err == nil {
		return at
	}
	return program
}

// launch is the whole command line that becomes a program. sandboxExec comes
// first, so that the profile holds for the shell, too; stderr is the descriptor
// that shall be the program's standard error.
func (p *Plan) launch(sandboxExec, program string, args []string, stderr int, r execRequest) (argv, env []string, err error) {
	if p.Level == LevelSeatbelt {
		c := p.seatbelt
		c.Terminal = r.terminal
		if r.texts != "" { // and no other command sees them
			c.Write = append(slices.Clone(c.Write), seatbelt.Path{Name: r.texts, Dir: true})
			c.Keep = append(slices.Clone(c.Keep), r.texts+"/4", r.texts+"/5", r.texts+"/6")
		}
		if p.Spec.Seccomp.NoExec {
			c.Program, c.Launcher = real(program), []string{launchShell[0], envProgram}
		}
		profile, err := seatbelt.New(c)
		if err != nil {
			return nil, nil, err
		}
		argv = append(append([]string{sandboxExec}, profile.Args()...), "--")
	}
	env, byEnv := given(program, r.env)
	argv = append(append(argv, launchShell...), p.launcher(stderr), "bash")
	argv = append(append(argv, byEnv...), program)
	return append(argv, args...), env, nil
}

// Variables that bash sets for what it executes, and those that it, or the dynamic
// linker, would act on or lose. macOS also takes DYLD_… from what its own programs
// execute, as bash is.
var (
	setByShell = []string{"_", "OLDPWD", "PWD", "SHLVL"}
	ofTheShell = append(strings.Fields(`COMP_WORDBREAKS DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GLOBIGNORE GROUPS
		HISTCMD IFS LINENO MAILCHECK OPTARG OPTERR OPTIND POSIXLY_CORRECT PPID PS4 RANDOM REPLY SECONDS SHELLOPTS SRANDOM TMOUT UID`), setByShell...)
	prefixes = []string{"BASH", "LD_", "DYLD_"}
)

// given parts an environment in what bash can pass on and what env(1) is to set
// behind it. A program with "=" in its name, which env would take for a variable,
// has to live with what bash does.
func given(program string, env []string) (launcher, byEnv []string) {
	if strings.Contains(program, "=") {
		return env, nil
	}
	byEnv = []string{envProgram}
	for _, name := range setByShell {
		byEnv = append(byEnv, "-u", name)
	}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(ofTheShell, name) || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			byEnv = append(byEnv, kv)
		} else {
			launcher = append(launcher, kv)
		}
	}
	return launcher, byEnv
}

const envProgram = "/usr/bin/env"

// launched is the launcher's last word.
const launched = "+"

// launcher is the script that becomes the program. stderr is the descriptor that
// shall be its standard error; on the one after that the sandbox's watcher
// listens, which is told of the process group before there is something to end.
func (p *Plan) launcher(stderr int) string {
	var b strings.Builder
	// Not in POSIX mode, in which ulimit counts in other units.
	fmt.Fprintf(&b, "set +o posix\necho \"+$$\" >&%d\n%s\numask %03o", stderr+1, closeOthers(stderr), umask)
	options := map[string]struct {
		letter string
		unit   uint64
	}{"cpu": {"t", 1}, "nofile": {"n", 1}, "fsize": {"f", 1024}, "core": {"c", 1024}, "as": {"v", 1024}}
	for _, l := range p.rlimits {
		o := options[l.name]
		fmt.Fprintf(&b, " && ulimit -S -%s %d && ulimit -H -%s %d", o.letter, (l.soft+o.unit-1)/o.unit, o.letter, (l.hard+o.unit-1)/o.unit)
	}
	fmt.Fprintf(&b, ` && printf %s >&2 && exec 2>&%d %d>&- && exec "$@"`, launched, stderr, stderr)
	return b.String()
}

// commandLine prints what starts a command, "/PROGRAM".
func (p *Plan) commandLine() string {
	argv, _, err := p.launch("/usr/bin/sandbox-exec", "/PROGRAM", nil, 3, execRequest{env: p.Env})
	if err != nil {
		return err.Error()
	}
	return strings.Join(argv, "\n") + "\n"
}
