//go:build unix

package holdback

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// likeParent gives a tree that root has copied to the owner of where it is.
func likeParent(at string, parent *os.File) error {
	st, err := parent.Stat()
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	own, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return filepath.WalkDir(at, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(own.Uid), int(own.Gid))
	})
}
