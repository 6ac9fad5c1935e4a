//go:build linux && (amd64 || arm64)

package setup

import (
	"path"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// A Placeholder is a file or an empty directory that is made for the life of a
// sandbox.
type Placeholder struct {
	Name string // relative to the directory it is in
	File bool
	Size int // of a file
}

// PlaceholderDir is a directory for placeholders. The descriptors are the caller's.
type PlaceholderDir struct {
	DirFD        int
	LockFD       int // of Lock, with a shared lock (flock(2)) on it
	Lock         string
	LockID       rootfs.Identity
	Placeholders []Placeholder
}

// A Janitor program waits for the host's death, which is when a pipe has no
// write end any more, then for that of a sandbox, and removes placeholders. It
// shares the host's memory, and has of its descriptors those that it needs:
// others would hold pipes open. Its process, the host's child, has no other
// end: to be rid of it, kill it.
type Janitor struct {
	Program *launch.Program
	PID     *launch.Slot // of the process, as the host sees it
	Init    *launch.Slot // to set: the sandbox's pid 1
	created [][]created
}

// created is what the process is told of a placeholder while it waits.
type created struct {
	dirFD     *launch.Slot // where it is; before, nowhere
	ino, born *launch.Slot // of a file
	fd        int
}

// Created says that a placeholder is there and is to be removed.
func (j *Janitor) Created(dir, placeholder int, id rootfs.Identity) {
	m := j.created[dir][placeholder]
	m.ino.Set(int(uint32(id.Ino)))
	m.born.Set(int(uint32(id.Born % 1e9)))
	m.dirFD.Set(m.fd)
}

// NewJanitor returns the program. The caller keeps it reachable as long as the
// process lives.
func NewJanitor(pipeFD int, dirs []PlaceholderDir) *Janitor {
	outer, p := launch.NewProgram(2), launch.NewProgram(32)
	j := &Janitor{Program: outer, Init: p.NewSlot()}
	j.PID = outer.Clone("start janitor", launch.CloneArgs{Flags: unix.CLONE_PARENT}, p)

	p.Do("set name", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_NAME), p.Str("tegmen-janitor"))
	// What ends the host's process group, or its terminal, is not to end this.
	p.Do("new session", "", unix.SYS_SETSID)
	fds := []int{pipeFD}
	for _, h := range dirs {
		fds = append(fds, h.DirFD, h.LockFD)
	}
	place(p, fds)
	p.Do("close the rest", "", unix.SYS_CLOSE_RANGE, launch.Int(len(fds)), launch.Int(^uint32(0)), launch.Int(0))
	p.FreeCPUs(outer)
	p.Do("wait for the host's end", "", unix.SYS_READ, launch.Int(0), p.Words(0), launch.Int(1))
	// A guest that still runs would make what it could not before.
	p.Clone("wait for the sandbox's end", launch.CloneArgs{Flags: unix.CLONE_VFORK}, j.await())
	for i, h := range dirs {
		p.Clone("clean up", launch.CloneArgs{Flags: unix.CLONE_VFORK}, j.cleanUp(h, 1+2*i, 2+2*i))
	}
	return j
}

// await is done at once when no pid 1 has been set: then no guest has run.
//
// pid 1 has ended when all others in its namespace have been reaped. Commands
// are, after the host's death, children of the machine's init, which may take
// its time, and in some containers never does it. They were killed at once, so
// there is an end to waiting.
func (j *Janitor) await() *launch.Program {
	p := launch.NewProgram(8)
	pidfd := p.Do("open", "init", unix.SYS_PIDFD_OPEN, j.Init.Arg(), launch.Int(0)).Slot()
	epoll := p.Do("poll", "", unix.SYS_EPOLL_CREATE1, launch.Int(0)).Slot()
	// struct epoll_event: events, and on amd64 without padding, data.
	p.Do("poll", "", unix.SYS_EPOLL_CTL, epoll.Arg(), launch.Int(unix.EPOLL_CTL_ADD), pidfd.Arg(), p.Words(unix.EPOLLIN, 0))
	p.Do("poll", "", unix.SYS_EPOLL_PWAIT, epoll.Arg(), p.Words(0, 0), launch.Int(1), launch.Int(2000 /* ms */), launch.Int(0), launch.Int(8))
	return p
}

// In struct statx: of the inode number, the size and the nanoseconds of the
// birth, the lower half.
const statxIno, statxSize, statxBorn = 32, 40, 88

// cleanUp removes the placeholders, unless another sandbox needs them. A directory
// with something in it stays, and so does a file that is not what was made: it
// is the user's.
func (j *Janitor) cleanUp(h PlaceholderDir, dirFD, lockFD int) *launch.Program {
	p := launch.NewProgram(2*len(h.Placeholders) + 8)
	p.Do("lock", h.Lock, unix.SYS_FLOCK, launch.Int(lockFD), launch.Int(unix.LOCK_EX|unix.LOCK_NB))
	// The host may have died when it had done all this itself. Then what is
	// there now belongs to other sandboxes, which have another lock.
	st := stat(p, launch.Int(dirFD), h.Lock)
	p.Expect("compare", h.Lock, st, statxIno, launch.Int(uint32(h.LockID.Ino)))
	p.Expect("compare", h.Lock, st, statxBorn, launch.Int(uint32(h.LockID.Born%1e9)))
	list := make([]created, len(h.Placeholders))
	for i, g := range h.Placeholders {
		list[i] = created{dirFD: p.NewSlot(), ino: p.NewSlot(), born: p.NewSlot(), fd: dirFD}
		dir, name := list[i].dirFD.Arg(), path.Base(g.Name)
		if name != g.Name {
			const how = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS
			dir = p.Do("open", g.Name, unix.SYS_OPENAT2, dir, p.Str(path.Dir(g.Name)), p.Words(unix.O_PATH|unix.O_CLOEXEC, 0, how), launch.Int(24)).Try().Slot().Arg()
		}
		if !g.File {
			p.Do("remove", g.Name, unix.SYS_UNLINKAT, dir, p.Str(name), launch.Int(unix.AT_REMOVEDIR)).Try()
			continue
		}
		q := launch.NewProgram(8)
		st := stat(q, dir, name)
		q.Expect("compare", g.Name, st, statxIno, list[i].ino.Arg())
		q.Expect("compare", g.Name, st, statxBorn, list[i].born.Arg())
		q.Expect("compare", g.Name, st, statxSize, launch.Int(uint32(g.Size)))
		q.Do("remove", g.Name, unix.SYS_UNLINKAT, dir, q.Str(name), launch.Int(0))
		p.Clone("clean up", launch.CloneArgs{Flags: unix.CLONE_VFORK}, q)
	}
	j.created = append(j.created, list)
	p.Do("remove", h.Lock, unix.SYS_UNLINKAT, launch.Int(dirFD), p.Str(h.Lock), launch.Int(unix.AT_REMOVEDIR)).Try()
	return p
}

func stat(p *launch.Program, dir launch.Arg, name string) launch.Arg {
	_, st := launch.Out[unix.Statx_t](p)
	p.Do("stat", name, unix.SYS_STATX, dir, p.Str(name), launch.Int(unix.AT_SYMLINK_NOFOLLOW), launch.Int(rootfs.StatMask|unix.STATX_SIZE), st)
	return st
}
