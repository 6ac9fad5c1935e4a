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

// pauseEnd marks the end of the pause code in this program's text: "tegm".
const pauseEnd = 0x6d676574

// pauseImage is an executable that holds only the pause code: an ELF header,
// one segment, and a note that the stack is not executable.
func pauseImage() []byte {
	const (
		base    = 0x400000
		headers = 64 + 2*56
		maxCode = 512
	)
	text := unsafe.Slice((*byte)(pauseCode()), maxCode)
	end := bytes.Index(text, binary.LittleEndian.AppendUint32(nil, pauseEnd))
	if end < 0 {
		panic("launch: pause code has no end")
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

// Pause returns a sealed memfd holding the program that becomes pid 1 of a
// sandbox. Nothing can change it, so one serves all sandboxes, and a guest
// that could open /proc/1/exe would have nothing to overwrite (the attack of
// CVE-2019-5736). The caller closes it.
func Pause() (*os.File, error) {
	const name = "tegmen-init"
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // MFD_EXEC is 6.3; before, every memfd is executable
		fd, err = unix.MemfdCreate(name, flags)
	}
	if errors.Is(err, unix.EACCES) {
		return nil, &UnsupportedError{Feature: "executable memfd", Err: err, Remedy: "sysctl vm.memfd_noexec=1 or 0 allows it"}
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(pauseImage())
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write pause image: %w", err), f.Close())
	}
	return f, nil
}
