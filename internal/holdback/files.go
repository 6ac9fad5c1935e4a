package holdback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// moveInto moves a file or directory of the store, whatever the file systems. It
// replaces nothing.
func moveInto(from string, parent *os.File, name string) error {
	at := filepath.Join(parent.Name(), name)
	if runtime.GOOS == "linux" { // whatever a guest puts in the path's place meanwhile
		at = fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), name)
	}
	if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	if os.Rename(from, at) == nil {
		return nil
	}
	st, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case st.IsDir():
		err = os.CopyFS(at, os.DirFS(from))
	case st.Mode()&fs.ModeSymlink != 0:
		var to string
		if to, err = os.Readlink(from); err == nil {
			err = os.Symlink(to, at)
		}
	default:
		var text []byte
		if text, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(at, text, st.Mode().Perm())
		}
	}
	if err != nil {
		return err
	}
	return likeParent(at, parent)
}

// removeAll removes a tree, even directories that a guest has closed to their owner.
func removeAll(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // where it cannot be done, removing says why
		}
		return nil
	})
	return os.RemoveAll(dir)
}
