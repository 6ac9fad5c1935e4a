//go:build unix

package guest

import "syscall"

// own sets close-on-exec, and non-blocking mode so that the runtime polls the descriptor.
func own(fd int) error {
	syscall.CloseOnExec(fd)
	return syscall.SetNonblock(fd, true)
}
