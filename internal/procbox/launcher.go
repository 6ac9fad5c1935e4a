//go:build darwin || (linux && (amd64 || arm64))

package procbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/seatbelt"
)

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

// commandLine is the whole command line that becomes a program. sandboxExec comes
// first, so that the profile holds for the shell as well; stderr is the descriptor
// that becomes the program's standard error.
func commandLine(
	c *box.Config, sandboxExec, program string, stderr int, r box.Request,
) (argv, env []string, err error) {
	if c.Seatbelt != nil {
		b := *c.Seatbelt
		b.Terminal = r.Terminal
		if r.TextDir != "" { // and no other command sees them
			b.Write = append(slices.Clone(b.Write), seatbelt.Path{Name: r.TextDir, Dir: true})
			b.Keep = append(slices.Clone(b.Keep), r.TextDir+"/4", r.TextDir+"/5", r.TextDir+"/6")
		}
		if c.NoExec {
			b.Program, b.Launcher = real(program), []string{launchShell[0], envProgram}
		}
		profile, err := seatbelt.New(b)
		if err != nil {
			return nil, nil, err
		}
		argv = append(append([]string{sandboxExec}, profile.Args()...), "--")
	}
	env, byEnv := given(program, r.Env)
	argv = append(append(argv, launchShell...), launcher(c, stderr), "bash")
	argv = append(append(argv, byEnv...), program)
	return append(argv, r.Argv[1:]...), env, nil
}

// withPrivate lets commands write to their sandbox's private directory.
func withPrivate(c *box.Config, dir string) *box.Config {
	if c.Seatbelt == nil {
		return c
	}
	b, with := *c.Seatbelt, *c
	private := []seatbelt.Path{{Name: dir + "/tmp", Dir: true}, {Name: dir + "/workspace", Dir: true}}
	b.Write = append(private, b.Write...)
	with.Seatbelt = &b
	return &with
}

// Variables that bash sets for what it executes, and those that it, or the dynamic
// linker, would act on or lose. macOS also takes DYLD_… from what its own programs
// execute, as bash is.
var (
	setByShell = []string{"_", "OLDPWD", "PWD", "SHLVL"}
	ofTheShell = append(strings.Fields(`COMP_WORDBREAKS DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GLOBIGNORE GROUPS
		HISTCMD IFS LINENO MAILCHECK OPTARG OPTERR OPTIND POSIXLY_CORRECT PPID PS4 RANDOM REPLY SECONDS
		SHELLOPTS SRANDOM TMOUT UID`), setByShell...)
	prefixes = []string{"BASH", "LD_", "DYLD_"}
)

// given divides an environment into what bash can pass on and what env(1) sets
// after it. A program with "=" in its name, which env would take for a variable,
// must live with what bash does.
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
		if slices.Contains(ofTheShell, name) ||
			slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
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
// becomes its standard error; on the one after that the sandbox's watcher listens,
// which is told of the process group before there is something to end.
func launcher(c *box.Config, stderr int) string {
	var b strings.Builder
	// Not in POSIX mode, in which ulimit counts in other units.
	fmt.Fprintf(&b, "set +o posix\necho \"+$$\" >&%d\n%s\numask %03o", stderr+1, closeOthers(stderr), c.Umask)
	options := map[string]struct {
		letter string
		unit   uint64
	}{"cpu": {"t", 1}, "nofile": {"n", 1}, "fsize": {"f", 1024}, "core": {"c", 1024}, "as": {"v", 1024}}
	for _, l := range c.Rlimits {
		o := options[l.Name]
		soft, hard := (l.Soft+o.unit-1)/o.unit, (l.Hard+o.unit-1)/o.unit
		fmt.Fprintf(&b, " && ulimit -S -%s %d && ulimit -H -%s %d", o.letter, soft, o.letter, hard)
	}
	fmt.Fprintf(&b, ` && printf %s >&2 && exec 2>&%d %d>&- && exec "$@"`, launched, stderr, stderr)
	return b.String()
}

// CommandLine prints what starts a command in a sandbox whose private directory is
// dir.
func CommandLine(c *box.Config, r box.Request, dir string) string {
	argv, _, err := commandLine(withPrivate(c, dir), "/usr/bin/sandbox-exec", r.Argv[0], 3, r)
	if err != nil {
		return err.Error()
	}
	return strings.Join(argv, "\n") + "\n"
}
