//go:build darwin || linux

package box

import (
	"syscall"
	"time"
)

// ExitOf is the end of a command as wait4(2) tells it.
func ExitOf(status syscall.WaitStatus, u syscall.Rusage) Exit {
	return Exit{
		Status: status, User: time.Duration(u.Utime.Nano()), System: time.Duration(u.Stime.Nano()),
		MaxRSS: int64(u.Maxrss) * maxRSSUnit,
	}
}
