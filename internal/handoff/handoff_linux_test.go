package handoff

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// textPaths are the names by which a guest can open a text again.
func textPaths(f *os.File) []string { return []string{fmt.Sprintf("/proc/self/fd/%d", f.Fd())} }

// A text has every seal, and cannot be executed where the kernel knows how to prevent
// that.
func TestTextIsSealed(t *testing.T) {
	f, err := Text("")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	want := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if err != nil || seals&want != want {
		t.Errorf("seals %#x, %v; want %#x", seals, err, want)
	}
	if st, err := f.Stat(); seals&unix.F_SEAL_EXEC != 0 && (err != nil || st.Mode()&0o111 != 0) {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

// A number that is no terminal's is closed, and an error.
func TestTerminalOfNoTerminal(t *testing.T) {
	fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if master, slave, err := TerminalOf(fd, struct{ Rows, Cols uint16 }{}); err == nil {
		t.Errorf("got %v and %v", master, slave)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("the descriptor is open: %v", err)
	}
}
