//go:build darwin || (linux && (amd64 || arm64))

package privatedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/ns"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// owners are the guests that this process can have: its own user, and for root
// another one.
func owners(t *testing.T, test func(t *testing.T, o Owner)) {
	t.Run("own user", func(t *testing.T) {
		test(t, Owner{IDs: ns.IDs{HostUID: os.Geteuid(), HostGID: os.Getegid()}})
	})
	t.Run("another user", func(t *testing.T) {
		testenv.Need(t, testenv.Root)
		test(t, Owner{IDs: ns.IDs{HostUID: 4321, HostGID: 4322}, Become: true})
	})
}

// temp makes a directory of this test's own the one for temporary files, which all
// users may enter.
func temp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(testenv.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	return dir
}

func make1(t *testing.T, o Owner) *Dir {
	t.Helper()
	d, err := Make(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

func run(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A private directory is the guest's alone, and gone after Close, with all that is
// in it.
func TestMakeAndClose(t *testing.T) {
	owners(t, func(t *testing.T, o Owner) {
		dir := temp(t)
		d := make1(t, o)
		if filepath.Dir(d.Path) != dir {
			t.Errorf("made %s", d.Path)
		}
		for _, name := range []string{".", "tmp", "workspace"} {
			var st unix.Stat_t
			run(t, unix.Lstat(filepath.Join(d.Path, name), &st))
			if st.Mode&0o7777 != 0o700 || int(st.Uid) != o.IDs.HostUID || int(st.Gid) != o.IDs.HostGID && o.Become {
				t.Errorf("%s: mode %o of %d:%d", name, st.Mode, st.Uid, st.Gid)
			}
		}
		run(t, o.Do(func() error { return os.WriteFile(filepath.Join(d.Path, "tmp/x"), nil, 0o600) }))
		run(t, d.Close())
		gone(t, d.Path)
	})
}

// A command that ends removes what it had while its sandbox is closed.
func TestRemoveChildWhileClosing(t *testing.T) {
	owners(t, func(t *testing.T, o Owner) {
		temp(t)
		for range 300 {
			d := make1(t, o)
			at := filepath.Join(d.Path, "run-1")
			run(t, o.Do(func() error {
				return errors.Join(os.MkdirAll(at+"/a/b", 0o700), os.WriteFile(at+"/4", nil, 0o400), os.WriteFile(at+"/a/x", nil, 0))
			}))
			child := make(chan error)
			go func() { child <- d.RemoveChild(at) }()
			run(t, d.Close(), <-child)
			gone(t, d.Path)
		}
	})
}

// Sweep removes what a killed host has left behind, and nothing that is in use or
// somebody else's.
func TestSweep(t *testing.T) {
	owners(t, func(t *testing.T, o Owner) {
		dir := temp(t)
		used, left := make1(t, o), make1(t, o)
		run(t, left.Abandon())
		outside := filepath.Join(dir, "outside")
		run(t, os.Mkdir(outside, 0o755), os.Symlink(outside, filepath.Join(dir, prefix+"link")),
			os.WriteFile(filepath.Join(dir, prefix+"file"), nil, 0o644), os.Mkdir(filepath.Join(dir, "other"), 0o755))
		foreign := ""
		if o.Become { // root makes one that is not the guest's
			foreign = filepath.Join(dir, prefix+"foreign")
			run(t, os.Mkdir(foreign, 0o755))
		}
		Sweep(o)
		gone(t, left.Path)
		for _, path := range []string{used.Path, outside, filepath.Join(dir, "other"), filepath.Join(dir, prefix+"link"),
			filepath.Join(dir, prefix+"file"), foreign} {
			if _, err := os.Lstat(path); path != "" && err != nil {
				t.Error(err)
			}
		}
		run(t, used.Close())
		gone(t, used.Path)
	})
}

// hostile are trees that a guest can leave behind, to hold up their removal or to
// lead it elsewhere. victim is a directory that a link can lead to.
var hostile = map[string]func(at, victim string) error{
	"closed directories": func(at, _ string) error {
		err := errors.Join(os.MkdirAll(at+"/a/b", 0o700), os.WriteFile(at+"/a/b/c", nil, 0), os.Chmod(at+"/a/b", 0))
		return errors.Join(err, os.Chmod(at+"/a", 0), os.Mkdir(at+"/d", 0o100), os.Mkdir(at+"/e", 0o500))
	},
	"closed itself": func(at, _ string) error {
		return errors.Join(os.WriteFile(at+"/x", nil, 0), os.Chmod(at, 0))
	},
	"deep": func(at, _ string) error {
		dir, err := os.OpenRoot(at)
		name := strings.Repeat("x", 100)
		for range 60 { // more than a path may be long
			if err != nil {
				return err
			}
			within := dir
			if err = dir.Mkdir(name, 0o700); err == nil {
				dir, err = within.OpenRoot(name)
			}
			err = errors.Join(err, within.Close())
		}
		return errors.Join(err, dir.Close())
	},
	"names that removal would use": func(at, _ string) error {
		err := errors.Join(os.MkdirAll(at+"/moved-1/moved-2/moved-3", 0o700), os.MkdirAll(at+"/a/b/c", 0o700))
		return errors.Join(err, os.WriteFile(at+"/moved-4", nil, 0o600), os.MkdirAll(at+"/moved-5/x/y", 0o700))
	},
	"links": func(at, victim string) error {
		return errors.Join(os.Symlink(victim, at+"/a"), os.Symlink("/", at+"/b"), os.Symlink("..", at+"/c"),
			os.Mkdir(at+"/d", 0o700), os.Symlink(victim, at+"/d/moved-1"), os.Chmod(at+"/d", 0o500))
	},
	"all kinds": func(at, _ string) error {
		return errors.Join(unix.Mkfifo(at+"/fifo", 0), os.WriteFile(at+"/suid", nil, fs.ModeSetuid|0o777),
			os.Link(at+"/suid", at+"/hard link"), os.Mkdir(at+"/-rf", 0o777|fs.ModeSticky),
			os.WriteFile(at+"/-rf/\n", nil, 0o600))
	},
	"many": func(at, _ string) (err error) {
		for i := range 1010 { // read in more than one go
			err = errors.Join(err, os.WriteFile(at+"/"+strconv.Itoa(i), nil, 0))
		}
		return err
	},
}

func TestCloseRemovesHostileTrees(t *testing.T) {
	owners(t, func(t *testing.T, o Owner) {
		for name, leave := range hostile {
			t.Run(name, func(t *testing.T) {
				dir := temp(t)
				victim := filepath.Join(dir, "victim")
				run(t, os.Mkdir(victim, 0o777), os.WriteFile(victim+"/file", nil, 0o666), os.Chmod(victim, 0o777))
				for how, remove := range map[string]func(*Dir) error{
					"close": (*Dir).Close,
					"sweep": func(d *Dir) error { err := d.Abandon(); Sweep(o); return err },
				} {
					d := make1(t, o)
					run(t, o.Do(func() error { return leave(d.Path, victim) }))
					if err := remove(d); err != nil {
						t.Errorf("%s: %v", how, err)
					}
					gone(t, d.Path)
				}
				if st, err := os.Stat(victim + "/file"); err != nil || st.Mode() != 0o666&^umask() {
					t.Errorf("what a link leads to: %v, %v", st, err)
				}
			})
		}
	})
}

func umask() fs.FileMode {
	m := unix.Umask(0)
	unix.Umask(m)
	return fs.FileMode(m)
}

// Removal acts as the guest: a guest that puts a link to somebody's directory in the
// place of its own has nothing removed that it could not remove itself.
func TestRemoveFollowsNoLink(t *testing.T) {
	owners(t, func(t *testing.T, o Owner) {
		dir := temp(t)
		victim := filepath.Join(dir, "victim")
		run(t, os.MkdirAll(victim+"/sub", 0o755), os.WriteFile(victim+"/sub/file", nil, 0o644))
		link := filepath.Join(dir, prefix+"x")
		run(t, os.Symlink(victim, link))
		if err := o.Remove(link); err == nil {
			t.Error("a link was removed, or what it leads to")
		}
		if o.Become {
			if err := o.Remove(victim); err == nil {
				t.Error("a directory of root's was removed")
			}
		}
		if _, err := os.Stat(victim + "/sub/file"); err != nil {
			t.Error(err)
		}
		if err := o.Remove(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing directory: %v", err)
		}
	})
}

func TestMakeWithoutATemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if d, err := Make(Owner{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", d, err)
	}
	Sweep(Owner{}) // Make has said it
}

// A directory that is in use can be locked by nobody else, and one that is gone by
// nobody.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	held, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("locked twice: %v", err)
	}
	run(t, held.Close())
	again, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	run(t, again.Close())
	if _, err := lock(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("locked what is missing: %v", err)
	}
	link := filepath.Join(dir, "link")
	run(t, os.Symlink(t.TempDir(), link))
	if _, err := lock(link); err == nil {
		t.Error("locked what a link leads to")
	}
}
