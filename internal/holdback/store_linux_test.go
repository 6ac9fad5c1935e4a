package holdback

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// things are what can be held back, made in a directory.
var things = map[string]func(at string) error{
	"file": func(at string) error { return os.WriteFile(at, []byte("text"), 0o640) },
	"link": func(at string) error { return os.Symlink("/nowhere", at) },
	"directory": func(at string) error {
		return errors.Join(os.MkdirAll(at+"/a/b", 0o755), os.WriteFile(at+"/a/x", []byte("x"), 0o600),
			os.Symlink("x", at+"/a/l"), unix.Mkfifo(at+"/a/fifo", 0o600), os.Chmod(at+"/a/b", 0))
	},
}

// stores are a store on the file system of a workspace, and one on another.
func stores(t *testing.T, test func(t *testing.T, s *Store, ws string)) {
	t.Run("same file system", func(t *testing.T) {
		dir := testenv.Dir(t)
		test(t, Open(filepath.Join(dir, "a", "held")), dir)
	})
	t.Run("another", func(t *testing.T) {
		ws, err := os.MkdirTemp("/dev/shm", "tegmen-test-")
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(ws) })
		test(t, Open(filepath.Join(testenv.Dir(t), "held")), ws)
	})
}

func take(t *testing.T, s *Store, ws, path string) Item {
	t.Helper()
	dir, err := unix.Open(ws, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	if err := s.take(dir, path, Item{Workspace: ws, Path: path, Why: "which x", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(ws, path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
	items, err := s.List(ws)
	if err != nil || len(items) != 1 || items[0].Path != path || items[0].Why != "which x" {
		t.Fatalf("listed %+v, %v", items, err)
	}
	return items[0]
}

func TestStoreTakesAndRestores(t *testing.T) {
	for name, make := range things {
		t.Run(name, func(t *testing.T) {
			stores(t, func(t *testing.T, s *Store, ws string) {
				at := filepath.Join(ws, "thing")
				if err := make(at); err != nil {
					t.Fatal(err)
				}
				before, _ := os.Lstat(at)
				it := take(t, s, ws, "thing")
				if err := os.WriteFile(at, []byte("mine"), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := s.Restore(it); !errors.Is(err, fs.ErrExist) {
					t.Errorf("over another file: %v", err)
				}
				if text, _ := os.ReadFile(at); string(text) != "mine" {
					t.Errorf("replaced by %q", text)
				}
				if err := os.Remove(at); err != nil {
					t.Fatal(err)
				}
				if err := s.Restore(it); err != nil {
					t.Fatal(err)
				}
				after, err := os.Lstat(at)
				if err != nil || after.Mode().Type() != before.Mode().Type() {
					t.Errorf("restored %v, %v", after, err)
				}
				if name == "directory" {
					if text, err := os.ReadFile(at + "/a/x"); string(text) != "x" {
						t.Errorf("in it: %q, %v", text, err)
					}
					_ = os.Chmod(at+"/a/b", 0o700)
				}
				if left, err := s.List(""); err != nil || len(left) > 0 {
					t.Errorf("left in the store: %+v, %v", left, err)
				}
			})
		})
	}
}

// Who is still in the workspace may put a link in the way at any moment.
func TestRestoreFollowsNoLink(t *testing.T) {
	stores(t, func(t *testing.T, s *Store, ws string) {
		victim, thing := filepath.Join(testenv.Dir(t), "victim"), filepath.Join(ws, "thing")
		if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					_ = os.Symlink(victim, thing) // one of them may be there
					_ = os.Remove(thing)
				}
			}
		}()
		for range 300 {
			at := filepath.Join(s.dir, "x")
			err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, dataName), []byte("evil"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Restore(Item{ID: "x", Workspace: ws, Path: "thing"}) // something may be there
		}
		close(stop)
		<-stopped
		if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestStoreDrops(t *testing.T) {
	stores(t, func(t *testing.T, s *Store, ws string) {
		if err := things["directory"](filepath.Join(ws, "thing")); err != nil {
			t.Fatal(err)
		}
		it := take(t, s, ws, "thing")
		if err := s.Drop(it); err != nil {
			t.Fatal(err)
		}
		if names, err := os.ReadDir(s.dir); err != nil || len(names) > 0 {
			t.Errorf("left: %v, %v", names, err)
		}
	})
}

// An Item is text that a guest may have written: it leads nowhere outside the workspace
// and the store.
func TestStoreOfForgedItems(t *testing.T) {
	dir := testenv.Dir(t)
	s, ws := Open(filepath.Join(dir, "held")), filepath.Join(dir, "ws")
	victim := filepath.Join(dir, "victim")
	if err := errors.Join(os.MkdirAll(filepath.Join(s.dir, "x"), 0o700), os.Mkdir(ws, 0o755), os.Mkdir(victim, 0o755),
		os.WriteFile(filepath.Join(s.dir, "x", dataName), nil, 0o600), os.Symlink(victim, filepath.Join(ws, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../victim/x", victim + "/x", "link/x", "a/../../victim/x"} {
		if err := s.Restore(Item{ID: "x", Workspace: ws, Path: path}); err == nil {
			t.Errorf("%s: restored", path)
		}
	}
	for _, id := range []string{"", ".", "..", "../victim", victim} {
		if err := s.Drop(Item{ID: id}); err == nil {
			t.Errorf("%q: dropped", id)
		}
	}
	if names, err := os.ReadDir(victim); err != nil || len(names) > 0 {
		t.Errorf("made %v, %v", names, err)
	}
	text := `{"workspace":"` + ws + `","path":"../victim/x"}`
	if err := os.WriteFile(filepath.Join(s.dir, "x", metaName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if items, err := s.List(""); err != nil || len(items) > 0 {
		t.Errorf("listed %+v, %v", items, err)
	}
}

// A store that others can write to is refused.
func TestStoreOfOthers(t *testing.T) {
	dir := testenv.Dir(t)
	at := filepath.Join(dir, "held")
	if err := errors.Join(os.Mkdir(at, 0), os.Chmod(at, 0o777), os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := Open(at).take(fd, "x", Item{}); err == nil || !strings.Contains(err.Error(), "only this user can write to") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err != nil {
		t.Error(err)
	}
}

func TestDirIsOutsideTheWorkspace(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	if got := DefaultDir("/home/u", false); got != "/home/u/.local/state/tegmen/held" {
		t.Error(got)
	}
	if got := DefaultDir("/root", true); got != "/var/lib/tegmen/held" {
		t.Error(got)
	}
	for ws, inside := range map[string]bool{"/home/u": true, "/home/u/p": false, "/home/u/.local/state/tegmen/held": true, "/home": true} {
		got, err := Dir("/home/u/.local/state/tegmen/held", ws)
		if err != nil || inside != strings.HasPrefix(got, "/var/tmp/") {
			t.Errorf("%s: %s, %v", ws, got, err)
		}
	}
	if got, err := Dir("/var/tmp/x", "/var"); err == nil {
		t.Errorf("in the workspace: %s", got)
	}
}
