//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

// Steps that several programs have, each with the arguments that never change.

const (
	cwd    = unix.AT_FDCWD
	lastFD = 1<<32 - 1 // close_range(2): up to the highest there is
)

func ints(values ...int) []launch.Arg {
	args := make([]launch.Arg, len(values))
	for i, v := range values {
		args[i] = launch.Int(v)
	}
	return args
}

func prctl(p *launch.Program, what string, args ...int) launch.Step {
	return p.Do(what, "", unix.SYS_PRCTL, ints(args...)...)
}

func closeRange(p *launch.Program, what string, first, last, flags int) {
	p.Do(what, "", unix.SYS_CLOSE_RANGE, ints(first, last, flags)...)
}

// closeFrom closes all descriptors from first on.
func closeFrom(p *launch.Program, first int) { closeRange(p, "close the rest", first, lastFD, 0) }

func closeOnExec(p *launch.Program, fd int) {
	p.Do("close on exec", "", unix.SYS_FCNTL, ints(fd, unix.F_SETFD, unix.FD_CLOEXEC)...)
}

func setSignal(p *launch.Program, what string, sig unix.Signal, action launch.Arg) {
	p.Do(what, "", unix.SYS_RT_SIGACTION, launch.Int(sig), action, launch.Int(0), launch.Int(8))
}

func setns(p *launch.Program, what string, fd, flags int) {
	p.Do("enter", what, unix.SYS_SETNS, ints(fd, flags)...)
}

func chdir(p *launch.Program, what, path, dir string) { p.Do(what, path, unix.SYS_CHDIR, p.Str(dir)) }

func mkdir(p *launch.Program, path string, mode uint32) launch.Step {
	return p.Do("mkdir", path, unix.SYS_MKDIRAT, launch.Int(cwd), p.Str(path), launch.Int(mode))
}

// openAt opens name in the directory dirFD. An error message calls it path.
func openAt(p *launch.Program, what, path string, dirFD int, name string, flags int, mode uint32) launch.Step {
	flags |= unix.O_CLOEXEC
	return p.Do(what, path, unix.SYS_OPENAT, launch.Int(dirFD), p.Str(name), launch.Int(flags), launch.Int(mode))
}

// resolve opens name with O_PATH under the restrictions of openat2(2), RESOLVE_….
func resolve(p *launch.Program, what, path string, dir launch.Arg, name string, restrictions uint64) launch.Step {
	return openat2(p, what, path, dir, name, unix.O_PATH|unix.O_CLOEXEC, restrictions)
}

// openLink is resolve for a name that may be a symbolic link itself: RESOLVE_NO_SYMLINKS
// refuses only those on the way to it then (openat2(2)).
func openLink(p *launch.Program, what, path string, dir launch.Arg, name string, restrictions uint64) launch.Step {
	return openat2(p, what, path, dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, restrictions)
}

func openat2(
	p *launch.Program, what, path string, dir launch.Arg, name string, flags, restrictions uint64,
) launch.Step {
	how := p.Words(flags, 0, restrictions) // struct open_how
	return p.Do(what, path, unix.SYS_OPENAT2, dir, p.Str(name), how, launch.Int(24))
}

// write writes all of text, in one call: the files are short.
func write(p *launch.Program, path string, fd launch.Arg, text string) {
	p.Do("write", path, unix.SYS_WRITE, fd, p.Str(text), launch.Int(len(text)))
}

// mountFS mounts a new file system at target. An error message calls it path.
func mountFS(p *launch.Program, what, path, fstype, target string, flags int, data string) launch.Step {
	name := p.Str(fstype)
	return p.Do(what, path, unix.SYS_MOUNT, name, p.Str(target), name, launch.Int(flags), p.Str(data))
}

// bindMount mounts source on target, both inside; flags are added to MS_BIND.
func bindMount(p *launch.Program, what, source, target string, flags int) {
	none := launch.Int(0)
	p.Do(what, target, unix.SYS_MOUNT, p.Str(source), p.Str(target), none, launch.Int(unix.MS_BIND|flags))
}

// execImage executes the program in a descriptor. cookie is an argument that the
// kernel ignores; see launch.Cookie.
func execImage(p *launch.Program, name string, fd int, argv, env []string, cookie uint64) {
	p.Do("exec", name, unix.SYS_EXECVEAT, launch.Int(fd), p.Str(""), p.Strings(argv), p.Strings(env),
		launch.Int(unix.AT_EMPTY_PATH), launch.Int(cookie))
}
