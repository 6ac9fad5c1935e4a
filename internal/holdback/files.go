package holdback

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// moveInto moves a file or directory of the store into a directory of the workspace,
// whatever the file systems. It replaces nothing, and follows no link there: a guest may
// put anything in the way meanwhile, and this process may be root.
func moveInto(from string, parent *os.Root, name string) error {
	dir, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, err := parent.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	at := filepath.Join(parent.Name(), name)
	if runtime.GOOS == "linux" { // whatever is at the directory's path now
		at = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	}
	if os.Rename(from, at) == nil {
		return nil
	}
	own, err := dir.Stat()
	if err != nil {
		return err
	}
	item, err := os.OpenRoot(filepath.Dir(from))
	if err != nil {
		return err
	}
	defer item.Close()
	return copyInto(item, filepath.Base(from), parent, name, own)
}

// copyInto copies a tree. What it makes belongs to the owner of own. A guest that is left
// may still have a directory of the tree open, so no link in it leads out either.
func copyInto(from *os.Root, old string, in *os.Root, name string, own fs.FileInfo) error {
	st, err := from.Lstat(old)
	if err != nil {
		return err
	}
	switch {
	case st.IsDir():
		return copyDirInto(from, old, in, name, own, st.Mode().Perm()|0o700)
	case st.Mode()&fs.ModeSymlink != 0:
		to, err := from.Readlink(old)
		if err == nil {
			err = in.Symlink(to, name)
		}
		return err
	case !st.Mode().IsRegular():
		return nil // no program reads settings from it
	}
	source, err := from.Open(old)
	if err != nil {
		return err
	}
	defer source.Close()
	f, err := in.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, st.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, source)
	return errors.Join(err, giveTo(f, own), f.Close())
}

func copyDirInto(
	from *os.Root, old string, in *os.Root, name string, own fs.FileInfo, mode fs.FileMode,
) error {
	tree, err := from.OpenRoot(old)
	if err != nil {
		return err
	}
	defer tree.Close()
	entries, err := fs.ReadDir(tree.FS(), ".")
	if err == nil {
		err = in.Mkdir(name, 0o700)
	}
	if err != nil {
		return err
	}
	sub, err := in.OpenRoot(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	dir, err := sub.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	// Another directory may have been put in its place: it is not given away.
	if there, err := dir.Readdirnames(1); len(there) > 0 || !errors.Is(err, io.EOF) {
		return errors.Join(err, fs.ErrExist)
	}
	for _, e := range entries {
		if err := copyInto(tree, e.Name(), sub, e.Name(), own); err != nil {
			return err
		}
	}
	return errors.Join(dir.Chmod(mode), giveTo(dir, own))
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
