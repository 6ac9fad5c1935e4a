package testenv

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// MemoryUpper is a kernel whose tmpfs can hold the changes of an overlay (6.6). Its name is "overlay".
var MemoryUpper = Feature{"overlay", func() error { return upperOn(unix.TMPFS_MAGIC) }}

// Upper is a directory that can hold the changes of an overlay. Its name is "upper".
func Upper(dir string) Feature {
	return Feature{"upper", func() error {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			return err
		}
		return upperOn(fs.Type)
	}}
}

func upperOn(fs int64) error {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	var major, minor int
	release := unix.ByteSliceToString(uts.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return err
	}
	switch {
	case fs == unix.OVERLAYFS_SUPER_MAGIC || fs == unix.V9FS_MAGIC:
		return fmt.Errorf("file system %#x", fs)
	case fs == unix.TMPFS_MAGIC && (major < 6 || major == 6 && minor < 6):
		return fmt.Errorf("a tmpfs of Linux %s", release)
	}
	return nil
}
