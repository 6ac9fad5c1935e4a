//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// As calls f on a thread that acts on file systems as another user, without the
// caller's capabilities over files, and then ends the thread. The files that f
// creates belong to that user, and f can touch nothing that the user could not. As
// needs CAP_SETUID and CAP_SETGID. f must not leave file access to another
// goroutine.
func As(id Identity, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread with the goroutine
		err := dumpable.keep(func() error { return actAs(id) })
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// actAs makes raw calls: the wrappers of package syscall change every thread.
func actAs(id Identity) error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return fmt.Errorf("setgroups: %w", e)
	}
	// They return the former id whether or not they have changed it. A second call,
	// with an invalid id, returns the present one (setfsuid(2)).
	for _, c := range []struct {
		name string
		nr   uintptr
		id   int
	}{{"setfsgid", unix.SYS_SETFSGID, id.GID}, {"setfsuid", unix.SYS_SETFSUID, id.UID}} {
		unix.RawSyscall(c.nr, uintptr(c.id), 0, 0)
		if now, _, _ := unix.RawSyscall(c.nr, ^uintptr(0), 0, 0); int(int32(now)) != int(int32(c.id)) {
			return fmt.Errorf("%s %d: %w", c.name, c.id, unix.EPERM)
		}
	}
	return nil
}
