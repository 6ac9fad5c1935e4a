//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// As calls f on a thread that is, to file systems, another user, without the
// capabilities that the caller has over files, and then ends the thread. What f
// makes is that user's, and it can touch nothing that user could not. It takes
// CAP_SETUID and CAP_SETGID. f leaves file systems to no other goroutine.
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
	// They return what was before, whether or not it has changed; asked again
	// with an id that is none, what is (setfsuid(2)).
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
