package procbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// sandboxExec is the only one that is asked: what stands in PATH is anyone's.
const sandboxExec = "/usr/bin/sandbox-exec"

// Probe finds out what this machine and account can do. It starts nothing
// and changes nothing.
func Probe() (box.Host, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return box.Host{}, err
	}
	h := box.Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: unix.ByteSliceToString(uts.Release[:]),
		UID: os.Geteuid(), GID: os.Getegid(), CPUs: runtime.NumCPU(),
		HardLimits: make(map[string]uint64), Lookup: lookup, ReadFile: protect.ReadSmall, ReadDir: protect.ReadNames,
		TrySeatbelt: func() error { return trySandboxExec(sandboxExec) }, SandboxExec: sandboxExec,
	}
	h.Path = os.Getenv("PATH")
	h.Home, _ = os.UserHomeDir() // without one there are no secrets in it
	if memory, err := unix.SysctlUint64("hw.memsize"); err == nil {
		h.MemoryBytes = int64(memory)
	}
	for name, resource := range map[string]int{
		"core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "fsize": unix.RLIMIT_FSIZE, "nofile": unix.RLIMIT_NOFILE,
	} {
		var lim unix.Rlimit
		if err := unix.Getrlimit(resource, &lim); err != nil {
			return box.Host{}, err
		}
		h.HardLimits[name] = lim.Max
	}
	return h, nil
}

// lookup follows symbolic links: /tmp is one, and Seatbelt knows files by where
// they really are.
func lookup(path string) (rootfs.Source, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Lstat(real, &st); err != nil {
		return rootfs.Source{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG && kind != unix.S_IFCHR {
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: box.ErrNotFile}
	}
	return rootfs.Source{
		Path:     real,
		Identity: rootfs.Identity{Dev: uint64(st.Dev), Ino: st.Ino, Born: st.Btim.Nano(), Dir: kind == unix.S_IFDIR},
		UID:      int(st.Uid), GID: int(st.Gid), Mode: uint32(st.Mode & 0o7777),
	}, nil
}

// trySandboxExec returns why a program cannot be run by sandbox-exec.
func trySandboxExec(program string) error {
	if program == "" {
		return &launch.UnsupportedError{Feature: "sandbox-exec(1)"}
	}
	cmd := exec.Command(program, "-p", "(version 1)(allow default)", "/bin/sh", "-c", ":")
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	err = seatbeltError(string(bytes.TrimSpace(out)), err)
	if err != nil && !errors.Is(err, launch.ErrUnsupported) && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", box.ErrShort, err)
	}
	return err
}
