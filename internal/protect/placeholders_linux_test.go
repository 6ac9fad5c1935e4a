package protect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// sourceOf is a directory of this machine.
func sourceOf(t *testing.T, dir string) rootfs.Source {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	st, err := rootfs.Stat(fd)
	if err != nil {
		t.Fatal(err)
	}
	return rootfs.Source{Path: dir, Identity: rootfs.Identify(&st)}
}

// guest is who may write to the directories of these tests: this process's user.
var guest = Guest{UID: os.Geteuid()}

// open opens a directory to put placeholders in, with these names, and closes it when
// the test ends.
func open(t *testing.T, dir string, names ...string) *Held {
	t.Helper()
	d := Dir{Source: sourceOf(t, dir), Names: names}
	for _, n := range names {
		d.Placeholders = append(d.Placeholders, Placeholder{Name: n, File: strings.HasSuffix(n, "file"), Data: ".\n"})
	}
	h, err := Open(d, guest)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func closeHeld(t *testing.T, h *Held) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// list is what is in a directory.
func list(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// hold locks the directory and makes all placeholders.
func hold(t *testing.T, h *Held) {
	t.Helper()
	if err := h.Hold(); err != nil {
		t.Fatal(err)
	}
	for _, p := range h.Placeholders {
		if _, err := h.Make(p); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
	}
}

// Placeholders are there, writable to nobody whatever the umask, while they are held,
// and gone after that.
func TestPlaceholdersComeAndGo(t *testing.T) {
	dir := t.TempDir()
	defer unix.Umask(unix.Umask(0o077))
	h := open(t, dir, "dir", "a file")
	if h.Locked() {
		t.Error("locked before Hold")
	}
	hold(t, h)
	closed := Placeholder{Name: "closed", Closed: true}
	if _, err := h.Make(closed); err != nil {
		t.Fatal(err)
	}
	h.Names = append(h.Names, closed.Name)
	for _, name := range []string{"dir", "closed", "a file", LockName} {
		st, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		readable := name == "a file" || name == LockName // by guests who are another user
		mode := st.Mode()
		if mode&fs.ModeSticky == 0 || mode&0o222 != 0 || readable && mode&0o444 != 0o444 ||
			name == "closed" && mode&0o111 != 0 {
			t.Errorf("%s: mode %v", name, mode)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a file")); err != nil || string(text) != ".\n" {
		t.Errorf("%q, %v", text, err)
	}
	src, made := h.Made("dir")
	if want := sourceOf(t, filepath.Join(dir, "dir")); !made || src.Identity != want.Identity || src.Path != want.Path {
		t.Errorf("made %v, %+v, want %+v", made, src, want)
	}
	if _, made := h.Made("other"); made {
		t.Error("made what nobody asked for")
	}
	dirFD, lockFD, lock := h.Descriptors()
	if !h.Locked() || dirFD < 3 || lockFD < 3 || lock != sourceOf(t, filepath.Join(dir, LockName)).Identity {
		t.Errorf("descriptors %d and %d, lock %+v", dirFD, lockFD, lock)
	}
	closeHeld(t, h)
	if left := list(t, dir); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// The last sandbox that needs placeholders removes them, with those of others.
func TestPlaceholdersAreShared(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, "both", "first")
	hold(t, first)
	second := open(t, dir, "both", "second")
	hold(t, second)
	a, _ := first.Made("both")
	if b, _ := second.Made("both"); a.Identity != b.Identity {
		t.Errorf("two placeholders for one name: %v and %v", a, b)
	}
	closeHeld(t, first)
	if got := list(t, dir); got != ".tegmen both first second" {
		t.Errorf("one sandbox is left, and of the placeholders: %s", got)
	}
	second.Names = append(second.Names, "first")
	closeHeld(t, second)
	if left := list(t, dir); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// What people make is neither taken for a placeholder nor removed.
func TestPlaceholdersKeepWhatIsNone(t *testing.T) {
	dir := t.TempDir()
	names := []string{"theirs", "file", "filled", "link", "replaced file"}
	h := open(t, dir, names...)
	if err := h.Hold(); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	run(os.Mkdir(at("theirs"), 0o755), os.WriteFile(at("file"), nil, 0o444), os.Symlink("/", at("link")))
	for _, p := range h.Placeholders {
		_, err := h.Make(p)
		foreign := slices.Contains([]string{"theirs", "file", "link"}, p.Name)
		if foreign != errors.Is(err, rootfs.ErrChanged) {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	// Somebody puts something into one, and replaces another.
	run(os.Chmod(at("filled"), 0o755), os.WriteFile(at("filled/x"), nil, 0o644),
		os.Chmod(at("filled"), 0o555|fs.ModeSticky))
	run(os.WriteFile(at("new"), []byte(".\n"), 0o444), os.Chmod(at("new"), 0o444|fs.ModeSticky),
		os.Rename(at("new"), at("replaced file"))) // while the old one is there, so that it is another inode
	closeHeld(t, h)
	if got, want := list(t, dir), "file filled filled/x link replaced file theirs"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
	run(os.Chmod(at("filled"), 0o755))
}

// No link leads a placeholder, or its removal, elsewhere.
func TestPlaceholdersFollowNoLinks(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(outside, "dir"), 0o1555); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(outside, "dir"), 0o555|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	h := open(t, dir, "link/dir", "link/new", "link/file", "../up")
	if err := h.Hold(); err != nil {
		t.Fatal(err)
	}
	for _, p := range h.Placeholders {
		if _, err := h.Make(p); err == nil {
			t.Errorf("%s was made", p.Name)
		}
	}
	closeHeld(t, h)
	if got := list(t, outside); got != "dir" {
		t.Errorf("outside there is: %s", got)
	}

	for name, want := range map[string]error{"link": unix.ENOTDIR, ".": rootfs.ErrChanged, "none": fs.ErrNotExist} {
		src := rootfs.Source{Path: filepath.Join(dir, name), Identity: sourceOf(t, outside).Identity}
		if _, err := Open(Dir{Source: src}, guest); !errors.Is(err, want) {
			t.Errorf("open %s, which is another directory: %v, want %v", name, err, want)
		}
	}
}

// Where no guest can make anything, nothing need stand in its way. Where a guest is
// the owner it could change the mode, and that is an error.
func TestPlaceholdersInReadOnlyDirectories(t *testing.T) {
	testenv.Need(t, testenv.User)
	h := open(t, "/usr")
	if err := h.Hold(); !errors.Is(err, ErrUnwritable) {
		t.Errorf("another's directory: %v", err)
	}
	closeHeld(t, h)

	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	h = open(t, dir)
	err := h.Hold()
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnwritable) {
		t.Errorf("a directory of the guest's: %v", err)
	}
	closeHeld(t, h)

	other, err := Open(Dir{Source: sourceOf(t, dir)}, Guest{UID: os.Geteuid(), Other: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Hold(); !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnwritable) {
		t.Errorf("a guest who is another user: %v", err)
	}
	closeHeld(t, other)
}

// Hold waits for who removes placeholders, and makes a new lock when the old one is
// gone.
func TestHoldWaitsForACleaner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, LockName)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	cleaner, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(cleaner.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	h := open(t, dir)
	held := make(chan error)
	go func() { held <- h.Hold() }()
	select {
	case err := <-held:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
	if err := cleaner.Close(); err != nil {
		t.Error(err)
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
	if _, _, lock := h.Descriptors(); lock != sourceOf(t, path).Identity {
		t.Error("it holds the lock that is gone")
	}
	closeHeld(t, h)
	if left := list(t, dir); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// A lock that is no directory is an error, and not followed.
func TestHoldRefusesALink(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, LockName)); err != nil {
		t.Fatal(err)
	}
	h := open(t, dir)
	if err := h.Hold(); !errors.Is(err, unix.ELOOP) || h.Locked() {
		t.Errorf("locked %v, %v", h.Locked(), err)
	}
	closeHeld(t, h)
}

// ReadSmall reads a page of a regular file, and neither follows nor waits.
func TestReadSmall(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("large"), make([]byte, 10000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("large", at("link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadSmall(at("large")); err != nil || len(b) != 4096 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for name, want := range map[string]error{
		"link": unix.ELOOP, "fifo": fs.ErrInvalid, ".": fs.ErrInvalid, "none": fs.ErrNotExist,
	} {
		if b, err := ReadSmall(at(name)); !errors.Is(err, want) || b != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
