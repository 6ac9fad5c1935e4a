//go:build unix

package workspace

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DiskUse returns the space, in bytes, that the files beneath a directory take,
// each counted once however many names it has. Files that disappear meanwhile, or
// that this process may not look at, do not count.
func DiskUse(dir string) (sum int64) {
	type inode struct{ dev, ino uint64 }
	linked := make(map[inode]bool)
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { // what fails does not count
		var st unix.Stat_t
		if err != nil || unix.Lstat(path, &st) != nil {
			return nil
		}
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			id := inode{uint64(st.Dev), uint64(st.Ino)}
			if linked[id] {
				return nil
			}
			linked[id] = true
		}
		sum += int64(st.Blocks) * 512
		return nil
	})
	return sum
}
