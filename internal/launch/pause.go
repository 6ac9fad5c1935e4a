//go:build linux && (amd64 || arm64)

package launch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// imageEnd marks the end of an image's code in this program's text: "tegm".
const imageEnd = 0x6d676574

// image is an executable that holds only the code at an address of this
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

// Pause returns the program that becomes pid 1 of a sandbox, as Gate does. The
// caller closes it.
func Pause() (*os.File, error) { return sealed("tegmen-init", pauseCode()) }

// Reaper returns the program that is the parent of a command where there is no
// pid namespace, and the new parent of all that descends from it and is orphaned
// (PR_SET_CHILD_SUBREAPER). At 0 it has the read end of a pipe through which it
// gets the command's pid, 8 bytes, and at 1 a pipe to which it writes the
// command's wait status, 8 bytes, and its struct rusage when it has ended.
//
// On SIGTERM, or when the pipe is closed before it gets the pid, it kills all
// processes that it may signal and ends with the last of them. Those have to be
// its own: it is in a Landlock domain that scopes signals (Linux 6.12), in which
// everything it starts is, too. Where it finds that it could signal its parent,
// it ends at once.
func Reaper() (*os.File, error) { return sealed("tegmen-reaper", reaperCode()) }

// Gate returns the program that every command executes first, in a memfd. It
// has nothing of the host's in memory, so only here are signals let in and is a
// path followed that a guest has a say in: in the process that still shares the
// host's memory a signal could have that dumped, and /proc/self/exe is the
// host's own executable (the attack of CVE-2019-5736).
//
// Its arguments are those of GateArgs. When nothing can be executed it writes
// the errno, 8 bytes, to the report descriptor; otherwise that is closed by the
// execve. The caller closes the file.
//
// It makes these system calls, which a filter that is in force already has to
// allow: see GateCalls.
func Gate() (*os.File, error) { return sealed("tegmen-gate", gateCode()) }

// GateCalls are what the gate calls, by their names.
var GateCalls = []string{"prctl", "capset", "openat", "write", "close", "fcntl", "rt_sigprocmask", "execve", "exit_group"}

// A Cookie is passed as the fourth argument of the gate's execve, which the
// kernel does not look at: a seccomp filter can let that execve pass and no
// other, since a guest cannot know it. No byte of it is 0.
type Cookie [8]byte

// NewCookie returns a random one.
func NewCookie() (c Cookie, err error) {
	if _, err := unix.Getrandom(c[:], 0); err != nil {
		return c, fmt.Errorf("getrandom: %w", err)
	}
	for i := range c {
		c[i] = max(c[i], 1)
	}
	return c, nil
}

// Arg is the cookie as an argument.
func (c Cookie) Arg() uint64 { return binary.LittleEndian.Uint64(c[:]) }

// GateArgs is the argument vector of a gate: it makes itself what the kernel
// kills first when memory runs out, executes the first of paths that exists,
// with the arguments argv, and reports through a descriptor from 1 to 255.
func GateArgs(reportFD int, paths, argv []string) []string {
	head := []string{string([]byte{byte(reportFD)}), "/proc/self/oom_score_adj", "1000"}
	return slices.Concat(head, paths, []string{""}, argv)
}

// GateEnv is the environment of a gate, which executes with env. The cookie is
// in it and not among the arguments: those anyone may read in /proc, and the
// environment only who may trace the process. A cookie of zeros stands for any.
func GateEnv(cookie Cookie, env []string) []string {
	for i := range cookie {
		cookie[i] = max(cookie[i], 1)
	}
	return append([]string{string(cookie[:])}, env...)
}

// sealed returns a memfd that nothing can change: one serves all sandboxes.
func sealed(name string, code unsafe.Pointer) (*os.File, error) {
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
