package ns

import "golang.org/x/sys/unix"

// LandlockABI asks the kernel for its version of Landlock. 0 means that the kernel has
// none or has it disabled.
func LandlockABI() int {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}
