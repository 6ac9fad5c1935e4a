//go:build linux && (amd64 || arm64)

package setup_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/rootfs"
)

func TestResourcesAreDistinct(t *testing.T) {
	seen := make(map[int]string)
	for _, name := range []string{"as", "core", "cpu", "fsize", "memlock", "nice", "nofile", "nproc", "rtprio"} {
		n := setup.Resource(name)
		if other, ok := seen[n]; ok {
			t.Errorf("%s and %s have the number %d", name, other, n)
		}
		seen[n] = name
	}
}

func source(t *testing.T, path string) rootfs.Source {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := rootfs.Stat(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return rootfs.Source{Path: path, Identity: rootfs.Identify(&st)}
}

// A path that was swapped after it was looked up is refused.
func TestOpenSourcesRefusesASwappedPath(t *testing.T) {
	testenv.Need(t, testenv.Root)
	dir := t.TempDir()
	path := dir + "/src"
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	table := rootfs.Table{{Path: "/", Kind: rootfs.Bind, Source: source(t, path)}}
	s, err := setup.OpenSources(table, nil)
	if errors.Is(err, unix.EPERM) {
		t.Skip("root without CAP_SYS_ADMIN")
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // Close is safe twice
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.Rename(path, dir+"/old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := setup.OpenSources(table, nil); !errors.Is(err, rootfs.ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := setup.OpenSources(table, nil); !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v, want ENOENT", err)
	}
}

// placeholders makes a lock, a directory and two files, and returns what the host
// would tell a janitor about them.
func placeholders(t *testing.T) (dir string, d setup.PlaceholderDir, ids []rootfs.Identity) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"lock", "dir"} {
		if err := os.Mkdir(dir+"/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "changed"} {
		if err := os.WriteFile(dir+"/"+name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dirFile, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(dir + "/lock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dirFile.Close(); lock.Close() })
	d = setup.PlaceholderDir{
		DirFD: int(dirFile.Fd()), LockFD: int(lock.Fd()), Lock: "lock", LockID: source(t, dir+"/lock").Identity,
		Placeholders: []setup.Placeholder{
			{Name: "dir"}, {Name: "file", File: true, Size: 1}, {Name: "changed", File: true, Size: 1},
		},
	}
	if err := unix.Flock(d.LockFD, unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	for _, h := range d.Placeholders {
		ids = append(ids, source(t, dir+"/"+h.Name).Identity)
	}
	return dir, d, ids
}

// The janitor removes what was created once its pipe closes, and nothing else: a
// file that the user has put in a placeholder's place stays.
func TestJanitorRemovesPlaceholdersOnly(t *testing.T) {
	dir, d, ids := placeholders(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	j := setup.NewJanitor(int(r.Fd()), []setup.PlaceholderDir{d})
	s, err := launch.NewSpawner(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(j.Program, 0); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		j.Created(0, i, id)
	}
	if err := os.WriteFile(dir+"/changed", []byte("the user's"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil { // as the host's death would
		t.Fatal(err)
	}
	if err := launch.Reap(j.PID.Int()); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].Name() != "changed" {
		t.Errorf("left are %v, want the changed file alone", left)
	}
}
