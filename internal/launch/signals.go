//go:build linux && (amd64 || arm64)

package launch

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// IgnorableSignals lists the signals that a child may have to reset: all ordinary
// ones, which a program can start to ignore at any time, and the real-time ones that
// this process has inherited as ignored.
func IgnorableSignals() (list []unix.Signal) {
	for sig := unix.Signal(1); sig <= 64; sig++ {
		var act [4]uint64 // struct sigaction of the kernel; the handler comes first
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&act)), 8, 0, 0)
		if sig != unix.SIGKILL && sig != unix.SIGSTOP && (sig < 32 || errno == 0 && act[0] == 1 /* SIG_IGN */) {
			list = append(list, sig)
		}
	}
	return list
}
