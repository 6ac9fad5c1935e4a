//go:build unix

package holdback

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a directory that others can write to, or have made: they could
// replace what is in it.
func private(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if own, ok := st.Sys().(*syscall.Stat_t); !ok || int(own.Uid) != os.Geteuid() || !st.IsDir() || st.Mode()&0o022 != 0 {
		return fmt.Errorf("%s: not a directory that only this user can write to: "+
			"remove it, or set XDG_STATE_HOME", dir)
	}
	return nil
}

// giveTo gives an open file that root has made to the owner of own.
func giveTo(f *os.File, own fs.FileInfo) error {
	st, ok := own.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}
