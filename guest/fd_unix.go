//go:build unix

package guest

import "syscall"

// own keeps a descriptor from children, and has the runtime poll it.
func own(fd int) error {
	syscall.CloseOnExec(fd)
	return syscall.SetNonblock(fd, true)
}
