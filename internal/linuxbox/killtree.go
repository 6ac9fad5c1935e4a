//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A tag tells the processes of one command from those of others in the same
// sandbox: they are in a UTS namespace made for it, which none of them can
// leave, since that takes a capability and none can get one.
//
// The descriptor keeps the namespace, and so its number, from being given to
// another while a kill is under way.
type tag struct {
	uts      *os.File
	dev, ino uint64
}

// tagOf returns the tag of a command that cannot have been reaped yet. It is
// nil when the command is dead already.
func tagOf(pid int) *tag {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/uts")
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		_ = f.Close() // useless
		return nil
	}
	return &tag{f, st.Dev, st.Ino}
}

// on reports whether a process has the tag. One that runs a program which its
// user may not read cannot be looked at; err is EACCES then.
func (t *tag) on(pid int) (bool, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/ns/uts", &st)
	return err == nil && st.Dev == t.dev && st.Ino == t.ino, err
}

// kill kills all processes with the tag in a sandbox. They are stopped first, until no
// running one is found, so that a fork bomb cannot outrun the kill. Where that cannot be
// complete, the sandbox ends.
func (t *tag) kill(b *nsBox) {
	stopped := make(map[int]bool)
	for range 1000 {
		fresh := 0
		for _, pid := range t.processes(b) {
			if !stopped[pid] {
				stopped[pid] = true
				fresh++
				t.signal(pid, unix.SIGSTOP)
			}
		}
		if fresh == 0 {
			break
		}
	}
	for _, pid := range t.processes(b) {
		t.signal(pid, unix.SIGKILL)
	}
}

// processes lists those that have the tag. One that cannot be looked at might
// have it, and then nothing less than the end of its sandbox is safe.
func (t *tag) processes(b *nsBox) (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		b.Kill()
		return nil
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		b.Kill()
		return nil
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		on, err := t.on(pid)
		if on {
			pids = append(pids, pid)
		} else if errors.Is(err, unix.EACCES) && b.mayHold(pid) {
			b.Kill()
			return nil
		}
	}
	return pids
}

// mayHold reports whether a process that cannot be looked at could be of a command
// in the sandbox: it has a number in a pid namespace below this one, and the user
// of the sandbox's pid 1. No command is the first in its namespace; that of
// another sandbox cannot be looked at while it ends.
func (b *nsBox) mayHold(pid int) bool {
	status := func(pid int, key string) []string { return fieldsOf("/proc/"+strconv.Itoa(pid)+"/status", key) }
	inside, depth := status(pid, "NSpid:"), len(status(os.Getpid(), "NSpid:"))
	if len(inside) == depth+1 && inside[depth] == "1" {
		return false
	}
	theirs, ours := status(pid, "Uid:"), status(b.pid, "Uid:")
	return len(inside) > depth && len(theirs) > 0 && len(ours) > 0 && theirs[0] == ours[0]
}

// signal looks again after it holds the process, which may have ended and given
// its pid to another.
func (t *tag) signal(pid int, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if on, _ := t.on(pid); on {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it has ended
	}
}
