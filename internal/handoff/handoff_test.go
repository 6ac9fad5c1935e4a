//go:build darwin || linux

package handoff

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Only what gives a guest nothing more than reading and writing is handed over.
func TestSafe(t *testing.T) {
	dir := testenv.Dir(t) // short enough for the name of a socket
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stream, streamPeer, err := Channel()
	if err != nil {
		t.Fatal(err)
	}
	master, slave, err := OpenTerminal(box.WindowSize{Rows: 1, Cols: 1})
	if err != nil {
		t.Fatal(err)
	}
	closed := must(os.Open(os.DevNull))(t)
	_ = closed.Close()
	for _, c := range []struct {
		name string
		file *os.File
		safe bool
		is   error // nil: it can be handed over or copied
	}{
		{"a pipe to read", r, true, nil},
		{"a pipe to write", w, true, nil},
		{"a named pipe", must(os.OpenFile(fifo, os.O_RDWR, 0))(t), true, nil},
		{"a connected Unix stream", stream, true, nil},
		{"its peer", streamPeer, true, nil},
		{"the null device", must(os.OpenFile(os.DevNull, os.O_RDWR, 0))(t), true, nil},
		{"a file", must(os.Create(filepath.Join(dir, "file")))(t), false, nil},
		{"another device", must(os.Open("/dev/zero"))(t), false, nil},
		{"a terminal", slave, false, nil},
		{"its master", master, false, nil},
		{"a Unix datagram socket", socketPair(t, unix.SOCK_DGRAM), false, nil},
		{"a TCP socket", tcp(t), false, nil},
		// It would be connected in the host's network namespace, to an abstract socket there.
		{"an unconnected Unix stream socket", unconnected(t, false), false, nil},
		{"a listening one", unconnected(t, true), false, nil},
		{"a directory", must(os.Open(dir))(t), false, box.ErrInvalid},
		{"no file", nil, false, box.ErrInvalid},
		{"a closed file", closed, false, os.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			safe, err := Safe(c.file)
			if safe != c.safe || !errors.Is(err, c.is) {
				t.Errorf("%v, %v; want %v, %v", safe, err, c.safe, c.is)
			}
		})
		if c.file != nil {
			_ = c.file.Close() // one of them is closed
		}
	}
}

// socketPair returns an end of a Unix socket pair of a kind.
func socketPair(t *testing.T, kind int) *os.File {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(fds[1]); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "socket")
}

// unconnected returns a Unix stream socket without a peer.
func unconnected(t *testing.T, listen bool) *os.File {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil && listen {
		if err = unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(testenv.Dir(t), "s")}); err == nil {
			err = unix.Listen(fd, 1)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// tcp returns a connected socket.
func tcp(t *testing.T) *os.File {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	c := must(net.Dial("tcp", l.Addr().String()))(t)
	defer c.Close()
	return must(c.(*net.TCPConn).File())(t)
}

// Drain takes what is in a pipe, and does not wait for more.
func TestDrain(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var got bytes.Buffer
	Drain(&got, r)
	if got.Len() > 0 {
		t.Errorf("an empty pipe had %q", &got)
	}
	if _, err := w.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now()); err != nil { // as the engine does to end its own reading
		t.Fatal(err)
	}
	Drain(&got, r)
	Drain(&got, r)
	if got.String() != "late" {
		t.Errorf("got %q", &got)
	}
	if _, err := w.WriteString("lost"); err != nil {
		t.Fatal(err)
	}
	Drain(refuser{}, r) // ends
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	Drain(&got, r)
	if got.String() != "late" {
		t.Errorf("got %q at the end", &got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	Drain(&got, r)
}

type refuser struct{}

func (refuser) Write([]byte) (int, error) { return 0, errors.New("refused") }

// A command that writes faster than it is read does not keep Drain for ever.
func TestDrainEnds(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for b := make([]byte, 1<<16); ; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}()
	var got bytes.Buffer
	Drain(&got, r)
	if got.Len() > 2<<20 {
		t.Errorf("%d bytes", got.Len())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	<-writing
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Both ends of a channel speak to each other, and closing ours ends a read of ours.
func TestChannel(t *testing.T) {
	ours, theirs, err := Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{ours, theirs} {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s: flags %x, %v: a program that another goroutine starts would have it", f.Name(), flags, err)
		}
	}
	if err := unix.SetNonblock(int(ours.Fd()), true); err != nil { // Fd has made it blocking
		t.Fatal(err)
	}
	if _, err := theirs.WriteString("hello"); err != nil {
		t.Error(err)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(ours, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	ended := make(chan error)
	go func() { _, err := ours.Read(b); ended <- err }()
	time.AfterFunc(10*time.Millisecond, func() { _ = ours.Close() })
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("a read of what was closed: %v", err)
	}
	if n, err := theirs.Read(b); n != 0 || err != io.EOF {
		t.Errorf("the other end reads %d bytes, %v", n, err)
	}
	if err := theirs.Close(); err != nil {
		t.Error(err)
	}
}

func TestTerminal(t *testing.T) {
	master, slave, err := OpenTerminal(box.WindowSize{Rows: 12, Cols: 34})
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	size := func() box.WindowSize {
		w, err := unix.IoctlGetWinsize(int(slave.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			t.Fatal(err)
		}
		return box.WindowSize{Rows: w.Row, Cols: w.Col}
	}
	if got := size(); got != (box.WindowSize{Rows: 12, Cols: 34}) {
		t.Errorf("size %+v", got)
	}
	if err := Resize(master, box.WindowSize{Rows: 5, Cols: 6}); err != nil || size() != (box.WindowSize{Rows: 5, Cols: 6}) {
		t.Errorf("size %+v, %v", size(), err)
	}
	null := must(os.Open(os.DevNull))(t)
	if err := Resize(null, box.WindowSize{}); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("the null device: %v", err)
	}
	if err := null.Close(); err != nil {
		t.Error(err)
	}
	if err := Resize(null, box.WindowSize{}); err == nil {
		t.Error("a closed file was resized")
	}
}

// A text is read from its beginning, and nobody can change it, even through another
// descriptor.
func TestText(t *testing.T) {
	const text = "some text\n"
	f, err := Text(text)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != text {
		t.Errorf("%q, %v", b, err)
	}
	for _, name := range textPaths(f) {
		again, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // as well
		}
		if _, err := again.WriteString("x"); err == nil {
			t.Error("it was written to")
		}
		if err := again.Truncate(0); err == nil {
			t.Error("it was truncated")
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("it was written to")
	}
	b := make([]byte, len(text)+1)
	if n, err := f.ReadAt(b, 0); err != io.EOF || string(b[:n]) != text {
		t.Errorf("%q, %v", b[:n], err)
	}
}
