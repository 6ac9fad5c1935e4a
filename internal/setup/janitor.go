//go:build linux && (amd64 || arm64)

package setup

import (
	"path"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// A Placeholder is a file or an empty directory that exists for the life of a
// sandbox.
type Placeholder struct {
	Name string // relative to its PlaceholderDir
	File bool   // a file, not a directory
	Size int    // of a file, in bytes
}

// PlaceholderDir is a directory of the host with placeholders. The descriptors are
// the caller's.
type PlaceholderDir struct {
	DirFD        int             // the directory
	LockFD       int             // of Lock, holding a shared flock(2)
	Lock         string          // name in the directory
	LockID       rootfs.Identity // of Lock
	Placeholders []Placeholder   // in the order in which they are removed
}

// A Janitor program removes placeholders if the host process dies. It waits until
// a pipe has no write end any more, which means that the host has died, and then
// for the end of a sandbox. It shares the host's memory and keeps only the
// descriptors it needs, since others would hold pipes open. Its process is a child
// of the host's and does not end before the host does: to be rid of it, kill it.
type Janitor struct {
	Program *launch.Program // for one use
	PID     *launch.Slot    // the janitor's pid, as the host sees it
	Init    *launch.Slot    // to set: the sandbox's pid 1
	created [][]created
}

// created is how the host tells the waiting process about a placeholder.
type created struct {
	dirFD     *launch.Slot // its directory; -1 until it is created
	ino, born *launch.Slot // of a file
	fd        int
}

// Created tells the janitor that a placeholder exists and is to be removed. dir and
// placeholder are indices into the arguments of NewJanitor.
func (j *Janitor) Created(dir, placeholder int, id rootfs.Identity) {
	m := j.created[dir][placeholder]
	m.ino.Set(int(uint32(id.Ino)))
	m.born.Set(int(uint32(id.Born % 1e9)))
	m.dirFD.Set(m.fd) // last: from here on the process may act
}

// NewJanitor returns the program. The caller keeps it reachable as long as the
// process lives.
func NewJanitor(pipeFD int, dirs []PlaceholderDir) *Janitor {
	outer, p := launch.NewProgram(2), launch.NewProgram(32)
	j := &Janitor{Program: outer, Init: p.NewSlot()}
	j.PID = outer.Clone("start janitor", launch.CloneArgs{Flags: unix.CLONE_PARENT}, p)

	p.Do("set name", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_NAME), p.Str("tegmen-janitor"))
	// What ends the host's process group, or its terminal, must not end this.
	p.Do("new session", "", unix.SYS_SETSID)
	fds := []int{pipeFD}
	for _, d := range dirs {
		fds = append(fds, d.DirFD, d.LockFD)
	}
	placeAt(p, fds)
	closeFrom(p, len(fds))
	p.FreeCPUs(outer)
	p.Do("wait for the host's end", "", unix.SYS_READ, launch.Int(0), p.Words(0), launch.Int(1))
	// A guest that still runs would create what the placeholders kept it from.
	vfork := launch.CloneArgs{Flags: unix.CLONE_VFORK}
	p.Clone("wait for the sandbox's end", vfork, j.awaitSandbox())
	for i, d := range dirs {
		p.Clone("clean up", vfork, j.cleanUp(d, 1+2*i, 2+2*i))
	}
	return j
}

// awaitSandbox ends at once if no pid 1 has been set: then no guest has run.
//
// pid 1 has ended when all others in its namespace have been reaped. After the
// host's death commands are children of the machine's init, which may take its
// time, and in some containers never reaps. They were killed at once, so the wait
// has a limit.
func (j *Janitor) awaitSandbox() *launch.Program {
	p := launch.NewProgram(8)
	pidfd := p.Do("open", "init", unix.SYS_PIDFD_OPEN, j.Init.Arg()).Slot().Arg()
	epoll := p.Do("poll", "", unix.SYS_EPOLL_CREATE1).Slot().Arg()
	// struct epoll_event: events, and data, which on amd64 follows without padding.
	p.Do("poll", "", unix.SYS_EPOLL_CTL, epoll, launch.Int(unix.EPOLL_CTL_ADD), pidfd, p.Words(unix.EPOLLIN, 0))
	const limit = 2000 // ms
	p.Do("poll", "", unix.SYS_EPOLL_PWAIT, epoll, p.Words(0, 0), launch.Int(1), launch.Int(limit),
		launch.Int(0), launch.Int(8))
	return p
}

// Offsets in struct statx of the lower halves of the inode number, the size and the
// birth's nanoseconds.
const statxIno, statxSize, statxBorn = 32, 40, 88

// cleanUp removes the placeholders, unless another sandbox needs them. It leaves a
// directory that is not empty and a file that is not the one that was created:
// those are the user's.
func (j *Janitor) cleanUp(d PlaceholderDir, dirFD, lockFD int) *launch.Program {
	p := launch.NewProgram(2*len(d.Placeholders) + 8)
	p.Do("lock", d.Lock, unix.SYS_FLOCK, ints(lockFD, unix.LOCK_EX|unix.LOCK_NB)...)
	// The host may have done all this itself before it died. Anything there now
	// belongs to other sandboxes, which have another lock.
	st := stat(p, launch.Int(dirFD), d.Lock)
	p.Expect("compare", d.Lock, st, statxIno, launch.Int(uint32(d.LockID.Ino)))
	p.Expect("compare", d.Lock, st, statxBorn, launch.Int(uint32(d.LockID.Born%1e9)))
	list := make([]created, len(d.Placeholders))
	for i, h := range d.Placeholders {
		list[i] = created{dirFD: p.NewSlot(), ino: p.NewSlot(), born: p.NewSlot(), fd: dirFD}
		list[i].remove(p, h)
	}
	j.created = append(j.created, list)
	p.Do("remove", d.Lock, unix.SYS_UNLINKAT, launch.Int(dirFD), p.Str(d.Lock), launch.Int(unix.AT_REMOVEDIR)).Try()
	return p
}

// remove adds the removal of one placeholder. A file is removed by a process of its
// own, which ends if the file is not the one that was created.
func (c created) remove(p *launch.Program, h Placeholder) {
	dir, name := c.dirFD.Arg(), path.Base(h.Name)
	if name != h.Name {
		const how = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS
		dir = resolve(p, "open", h.Name, dir, path.Dir(h.Name), how).Try().Slot().Arg()
	}
	if !h.File {
		p.Do("remove", h.Name, unix.SYS_UNLINKAT, dir, p.Str(name), launch.Int(unix.AT_REMOVEDIR)).Try()
		return
	}
	q := launch.NewProgram(8)
	st := stat(q, dir, name)
	q.Expect("compare", h.Name, st, statxIno, c.ino.Arg())
	q.Expect("compare", h.Name, st, statxBorn, c.born.Arg())
	q.Expect("compare", h.Name, st, statxSize, launch.Int(uint32(h.Size)))
	q.Do("remove", h.Name, unix.SYS_UNLINKAT, dir, q.Str(name))
	p.Clone("clean up", launch.CloneArgs{Flags: unix.CLONE_VFORK}, q)
}

func stat(p *launch.Program, dir launch.Arg, name string) launch.Arg {
	_, st := launch.Out[unix.Statx_t](p)
	flags, mask := launch.Int(unix.AT_SYMLINK_NOFOLLOW), launch.Int(rootfs.StatMask|unix.STATX_SIZE)
	p.Do("stat", name, unix.SYS_STATX, dir, p.Str(name), flags, mask, st)
	return st
}
