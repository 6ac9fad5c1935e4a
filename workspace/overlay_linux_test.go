package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/workspace"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// put makes something in a layer. What cannot be, since a file is in the way, is not.
func put(layer, rel string, kind byte) {
	at := filepath.Join(layer, rel)
	if real, err := filepath.EvalSymlinks(layer); err != nil || real != layer || mkdirs(layer, filepath.Dir(rel)) != nil {
		return
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(at)); err != nil || real != filepath.Dir(at) {
		return // that would be elsewhere
	}
	if st, err := os.Lstat(at); err == nil && !st.IsDir() {
		return
	}
	switch kind % 12 {
	case 0, 1, 2:
		_ = os.WriteFile(at, []byte("text\n"), 0o644)
	case 3:
		_ = os.WriteFile(at, []byte("test\n"), 0o644)
	case 4:
		_ = os.WriteFile(at, []byte{0, 1, 2}, 0o755)
	case 5:
		_ = os.Mkdir(at, 0o755)
	case 6:
		_ = os.Mkdir(at, 0o700)
	case 7:
		_ = os.Symlink("a", at)
	case 8:
		_ = os.Symlink("../upper", at)
	case 9:
		_ = unix.Mkfifo(at, 0o644)
	case 10:
		if strings.HasSuffix(layer, "upper") {
			_ = unix.Mknod(at, unix.S_IFCHR, 0)
		}
	case 11:
		if strings.HasSuffix(layer, "upper") && os.MkdirAll(at, 0o755) == nil {
			_ = unix.Setxattr(at, "user.overlay.opaque", []byte("y"), 0)
		}
	}
}

// tree is what stands in a directory, by paths.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		all[strings.TrimPrefix(p, dir+"/")] = describe(t, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func describe(t testing.TB, p string) string {
	t.Helper()
	st, err := os.Lstat(p)
	if err != nil {
		t.Fatal(err)
	}
	var data string
	switch st.Mode().Type() {
	case 0:
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		data = string(b)
	case os.ModeSymlink:
		if data, err = os.Readlink(p); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%v %q", st.Mode(), data)
}

// merged is what an overlay shows, by the rules that the kernel documents, but for
// what is never committed, in whose place the lower's stays.
func merged(t testing.TB, upper, lower, rel string, into map[string]string) {
	t.Helper()
	exists := func(p string) (os.FileInfo, bool) { st, err := os.Lstat(p); return st, err == nil }
	var opaque [1]byte
	n, _ := unix.Getxattr(filepath.Join(upper, rel), "user.overlay.opaque", opaque[:])
	names := make(map[string]bool)
	if lows, err := os.ReadDir(filepath.Join(lower, rel)); err == nil && n != 1 {
		for _, e := range lows {
			names[e.Name()] = true
		}
	}
	ups, err := os.ReadDir(filepath.Join(upper, rel))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ups {
		names[e.Name()] = true
	}
	for name := range names {
		at := filepath.Join(rel, name)
		up, ok := exists(filepath.Join(upper, at))
		low := filepath.Join(lower, at)
		switch {
		case ok && up.Mode()&os.ModeCharDevice != 0:
		case ok && up.IsDir():
			into[at] = describe(t, filepath.Join(upper, at))
			below := lower
			if st, ok := exists(low); !ok || !st.IsDir() {
				below = filepath.Join(upper, "no such directory")
			}
			merged(t, upper, below, at, into)
		case ok && up.Mode().Type() != os.ModeNamedPipe:
			into[at] = describe(t, filepath.Join(upper, at))
		default:
			if st, ok := exists(low); ok {
				into[at] = describe(t, low)
				if st.IsDir() {
					for p, d := range tree(t, low) {
						into[filepath.Join(at, p)] = d
					}
				}
			}
		}
	}
}

func layersFrom(t testing.TB, data []byte) (o *workspace.Overlay, upper, lower string) {
	t.Helper()
	names := []string{"a", "b", ".wh.a", "c\nd", "é\xff", ".wh..wh..opq"}
	dir := t.TempDir()
	upper, lower = dir+"/upper", dir+"/lower"
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(lower, 0o755)); err != nil {
		t.Fatal(err)
	}
	for ; len(data) >= 3; data = data[3:] {
		where, path := []string{upper, lower}[data[0]&1], int(data[1])
		rel := names[path%len(names)]
		for path /= len(names); path > 0; path /= len(names) {
			rel += "/" + names[path%len(names)]
		}
		put(where, rel, data[2])
	}
	return overlayOf(t, upper, lower), upper, lower
}

func overlayOf(t testing.TB, upper, lower string) *workspace.Overlay {
	t.Helper()
	up, err1 := os.Open(upper)
	low, err2 := os.Open(lower)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = up.Close(), low.Close() })
	return &workspace.Overlay{Upper: up, Lower: low, Since: time.Now()}
}

// FuzzLayers commits any upper to any lower: then that is what the overlay showed,
// and nothing is left to be committed.
func FuzzLayers(f *testing.F) {
	f.Add([]byte("\x01\x00\x05\x01\x06\x00\x00\x00\x0b\x00\x06\x03"))                         // a directory made again
	f.Add([]byte("\x01\x00\x05\x01\x06\x00\x01\x0c\x05\x01\x30\x00\x00\x00\x00"))             // a file in the place of one
	f.Add([]byte("\x01\x00\x00\x00\x00\x05\x00\x06\x03"))                                     // and the reverse
	f.Add([]byte("\x01\x06\x00\x01\x0c\x08\x00\x00\x0a\x01\x01\x05\x00\x01\x09\x00\x02\x07")) // whiteouts, a pipe, links
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 300 {
			return
		}
		o, upper, lower := layersFrom(t, data)
		want := make(map[string]string)
		merged(t, upper, lower, ".", want)
		before := tree(t, upper)
		changes, err := o.Changes(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Diff(context.Background(), new(strings.Builder)); err != nil {
			t.Fatal(err)
		}
		done, err := o.Commit(context.Background(), workspace.CommitOptions{})
		if err != nil {
			t.Fatalf("%v\n%+v", err, changes)
		}
		if got := tree(t, lower); !maps.Equal(got, want) {
			t.Errorf("changes %+v\ngot\n%v\nwant\n%v", changes, got, want)
		}
		if now := tree(t, upper); !maps.Equal(before, now) {
			t.Errorf("the upper was\n%v\nand is\n%v", before, now)
		}
		if len(done.Applied)+len(done.Skipped) != len(changes) {
			t.Errorf("%d applied, %d skipped of %d", len(done.Applied), len(done.Skipped), len(changes))
		}
		left, err := o.Changes(context.Background())
		if err != nil || !slices.EqualFunc(left, done.Skipped, func(a, b workspace.Change) bool { return a.Path == b.Path }) {
			t.Errorf("left are %+v, skipped were %+v, %v", left, done.Skipped, err)
		}
	})
}

// mkdirs follows no link out of a layer.
func mkdirs(layer, rel string) error {
	root, err := os.OpenRoot(layer)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(rel, 0o755)
}
