//go:build darwin || (linux && (amd64 || arm64))

package engine

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// diskUse is the space that the files beneath a directory take, each once. What
// goes meanwhile, or cannot be looked at, does not count.
func diskUse(dir string) (sum Bytes) {
	type inode struct{ dev, ino uint64 }
	linked := make(map[inode]bool)
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err != nil || unix.Lstat(path, &st) != nil {
			return nil
		}
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if id := (inode{uint64(st.Dev), st.Ino}); linked[id] {
				return nil
			} else {
				linked[id] = true
			}
		}
		sum += Bytes(st.Blocks) * 512
		return nil
	})
	return sum
}
