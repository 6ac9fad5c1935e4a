package handoff

import (
	"os"

	"golang.org/x/sys/unix"
)

// GivePipe makes a user the owner of a pipe, so that it can be opened again through
// /proc/self/fd. A FIFO of a file system keeps its owner, as does all else.
func GivePipe(f *os.File, uid, gid int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	pipe := false
	if err := conn.Control(func(fd uintptr) {
		var st unix.Statfs_t
		pipe = unix.Fstatfs(int(fd), &st) == nil && st.Type == unix.PIPEFS_MAGIC
	}); err != nil || !pipe {
		return err
	}
	return f.Chown(uid, gid)
}
