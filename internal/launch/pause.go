//go:build linux && (amd64 || arm64)

package launch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// imageEnd marks the end of an image's code in this program's text: "tegm".
const imageEnd = 0x6d676574

// image returns an executable that holds only the code at an address of this
// program's text: an ELF header, one segment, and a note that the stack is not
// executable.
func image(code unsafe.Pointer) []byte {
	const (
		base    = 0x400000
		headers = 64 + 2*56
		maxCode = 512
	)
	text := unsafe.Slice((*byte)(code), maxCode)
	end := bytes.Index(text, binary.LittleEndian.AppendUint32(nil, imageEnd))
	if end < 0 {
		panic("launch: code has no end")
	}
	size := uint64(headers + end)
	le := binary.LittleEndian
	b := []byte{0x7f, 'E', 'L', 'F', 2 /* 64 bit */, 1 /* little endian */, 1, 15: 0}
	half := func(v uint16) { b = le.AppendUint16(b, v) }
	word := func(v uint32) { b = le.AppendUint32(b, v) }
	quad := func(vs ...uint64) {
		for _, v := range vs {
			b = le.AppendUint64(b, v)
		}
	}
	half(2) // ET_EXEC
	half(elfMachine)
	word(1)
	quad(base+headers, 64, 0) // entry, program headers, no section headers
	word(0)
	for _, v := range []uint16{64, 56, 2, 0, 0, 0} { // sizes and counts
		half(v)
	}
	word(1) // PT_LOAD
	word(5) // R+X
	quad(0, base, base, size, size, 0x1000)
	word(0x6474e551) // PT_GNU_STACK
	word(6)          // R+W
	quad(0, 0, 0, 0, 0, 16)
	return append(b, text[:end]...)
}

// Pause returns the program that becomes pid 1 of a sandbox, in a memfd. The caller
// closes it.
func Pause() (*os.File, error) { return sealed("tegmen-init", pauseCode()) }

// Reaper returns the program that is the parent of a command without a pid
// namespace, in a memfd. It adopts every descendant of the command that is orphaned
// (PR_SET_CHILD_SUBREAPER). The caller closes the file.
//
// Its descriptor 0 is the read end of a pipe from which it gets the command's pid, 8
// bytes. Its descriptor 1 is a pipe to which it writes, when the command has ended,
// the wait status, 8 bytes, and the struct rusage.
//
// On SIGTERM, or if the first pipe is closed before it gets the pid, it kills all
// processes that it may signal and ends with the last of them. Those must be its
// own: it is in a Landlock domain that scopes signals (Linux 6.12), and so is
// everything it starts. If it finds that it could signal its parent, it ends at
// once.
func Reaper() (*os.File, error) { return sealed("tegmen-reaper", reaperCode()) }

// sealed returns a memfd that nobody can change, so one serves all sandboxes.
func sealed(name string, code unsafe.Pointer) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // MFD_EXEC is 6.3; before, every memfd is executable
		fd, err = unix.MemfdCreate(name, flags)
	}
	if errors.Is(err, unix.EACCES) {
		return nil, &UnsupportedError{Feature: "executable memfd", Err: err,
			Remedy: "sysctl vm.memfd_noexec=1 or 0 allows it"}
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.Write(image(code)); err == nil {
		const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
		// F_SEAL_EXEC (6.3): the owner cannot take the execute bits away.
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_EXEC|unix.F_SEAL_SEAL)
		if errors.Is(err, unix.EINVAL) {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_SEAL)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", name, err), f.Close())
	}
	return f, nil
}
