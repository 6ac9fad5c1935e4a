//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/holdback"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/mountinfo"
	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Probe finds out what this machine and account can do. It starts nothing and
// changes nothing.
func Probe() (box.Host, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return box.Host{}, err
	}
	h := box.Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: unix.ByteSliceToString(uts.Release[:]),
		UID: unix.Geteuid(), GID: unix.Getegid(),
		HardLimits: make(map[string]uint64),
		Lookup:     lookup, ReadFile: protect.ReadSmall, Device: device,
		ReadDir: protect.ReadNames, LookupLink: lookupLink, TryIDMap: new(idMapTrials).try, Home: os.Getenv("HOME"),
		HeldDir: holdback.DefaultDir(os.Getenv("HOME"), unix.Geteuid() == 0),
		Cgroup:  cgroup.Find(), CPUs: runtime.NumCPU(), Path: os.Getenv("PATH"), Mounts: mounts,
	}
	h.Umask = umask()
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return box.Host{}, err
	}
	h.MemoryBytes = int64(uint64(info.Totalram) * uint64(info.Unit))
	if within := h.Cgroup.Memory; within > 0 {
		h.MemoryBytes = min(h.MemoryBytes, within)
	}
	var caps [2]unix.CapUserData
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&hdr, &caps[0]); err != nil {
		return box.Host{}, err
	}
	has := func(caps0 uint32, c ...int) bool {
		for _, c := range c {
			if caps0>>c&1 == 0 {
				return false
			}
		}
		return true
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return box.Host{}, err
	}
	h.Contained = len(strings.Fields(string(users))) != 3 || strings.Fields(string(users))[2] != "4294967295"
	h.TryNamespaces = func() error { return tryNamespaces(h.Contained) }
	h.Become = h.UID == 0 && has(caps[0].Effective, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP) &&
		hasID(string(users), Nobody)
	h.Mount = has(caps[0].Effective, unix.CAP_SYS_ADMIN)
	for _, name := range rootfs.ProcEntries() {
		if unix.Access("/proc/"+name, unix.F_OK) == nil {
			h.Proc = append(h.Proc, name)
		}
	}
	h.Seccomp, h.Landlock = hasSeccomp(), ns.LandlockABI()
	for _, name := range []string{"as", "core", "cpu", "fsize", "memlock", "nofile", "nproc"} {
		var lim unix.Rlimit
		if err := unix.Getrlimit(setup.Resource(name), &lim); err != nil {
			return box.Host{}, err
		}
		h.HardLimits[name] = lim.Max
	}
	return h, nil
}

// idMapTrials remembers which mounts can be idmapped: to find out takes as long as
// starting a sandbox.
type idMapTrials struct {
	mu    sync.Mutex
	tried map[mountID]error
}

// mountID is a mount and its file system; before Linux 5.8 mount is 0.
type mountID struct {
	mount        uint64
	major, minor uint32
}

func (t *idMapTrials) try(path string) error {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &st); err != nil {
		return &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	on := mountID{st.Mnt_id, st.Dev_major, st.Dev_minor}
	t.mu.Lock()
	defer t.mu.Unlock()
	err, known := t.tried[on]
	if !known {
		if t.tried == nil {
			t.tried = make(map[mountID]error)
		}
		err = tryIDMap(path)
		t.tried[on] = err
	}
	return err
}

// tryIDMap makes an id map for nobody and tries it.
func tryIDMap(path string) error {
	pause, err := launch.Pause()
	if err != nil {
		return err
	}
	defer pause.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	defer write.Close()
	idmap, err := setup.NewIDMap(Nobody, Nobody, pause, read)
	if err != nil {
		return err
	}
	return errors.Join(setup.TryIDMap(path, idmap), idmap.Close())
}

// umask is this process's, from Linux 4.7 on; 0 if it is not known. umask(2) could only
// tell by changing it.
func umask() (mask int) {
	text, err := protect.ReadSmall("/proc/self/status")
	if err == nil {
		_, after, _ := strings.Cut(string(text), "\nUmask:\t")
		_, _ = fmt.Sscanf(after, "%o", &mask)
	}
	return mask
}

// mounts lists the host's mounts.
func mounts() (list []rootfs.HostMount, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	for _, m := range mountinfo.Parse(string(text)) {
		list = append(list, rootfs.HostMount{Path: m.Point, Root: m.Root, Type: m.Type, Dev: m.Device})
	}
	return list, err
}

// hasSeccomp asks for an action that is as old as the filters need (4.14).
func hasSeccomp() bool {
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// privilegedExecutable reports whether this process has privileges from its
// executable that its user has not (CVE-2020-5291). The kernel says so to every
// process.
func privilegedExecutable() bool {
	const secure = 23 // AT_SECURE, getauxval(3); a security module's change of domain sets it as well
	vector, err := unix.Auxv()
	if err == nil && !slices.Contains(vector, [2]uintptr{secure, 1}) {
		return false
	}
	var caps [2]unix.CapUserData
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if unix.Capget(&hdr, &caps[0]) != nil {
		return true
	}
	return unix.Getuid() != unix.Geteuid() || unix.Getgid() != unix.Getegid() ||
		unix.Geteuid() != 0 && caps[0].Permitted|caps[1].Permitted != 0
}

// hasID reports whether a uid_map (user_namespaces(7)) has the id inside.
func hasID(table string, id int) bool {
	for line := range strings.Lines(table) {
		var inside, outside, count int
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && id >= inside && id < inside+count {
			return true
		}
	}
	return false
}

// Nobody is the user that guests of root are where no workspace says another.
const Nobody = 65534

// lookup follows ordinary links and refuses magic ones: /proc/self/root and
// its like are other names for what a Spec may not name.
// lookupLink finds a symbolic link itself. Its error is fs.ErrInvalid if there is something else.
func lookupLink(path string) (rootfs.Source, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: err}
	}
	defer unix.Close(fd)
	st, err := rootfs.Stat(fd)
	if err != nil {
		return rootfs.Source{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return rootfs.Source{}, &fs.PathError{Op: "read link", Path: path, Err: fs.ErrInvalid}
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return rootfs.Source{}, &fs.PathError{Op: "read link", Path: path, Err: err}
	}
	return rootfs.Source{
		Path: path, Identity: rootfs.Identify(&st), Link: string(buf[:n]), UID: int(st.Uid), GID: int(st.Gid), Mode: 0o777,
	}, nil
}

func lookup(path string) (rootfs.Source, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: err}
	}
	defer unix.Close(fd)
	st, err := rootfs.Stat(fd)
	if err != nil {
		return rootfs.Source{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return rootfs.Source{}, err
	}
	if st.Nlink == 0 {
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: unix.ENOENT}
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG && kind != unix.S_IFCHR {
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: box.ErrNotFile}
	}
	return rootfs.Source{
		Path: real, Identity: rootfs.Identify(&st),
		UID: int(st.Uid), GID: int(st.Gid), Mode: uint32(st.Mode & 0o7777),
	}, nil
}

// device is the number of a block device, as io.max wants it.
func device(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", &fs.PathError{Op: "find", Path: path, Err: unix.ENOTBLK}
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)), nil
}

// tryNamespaces makes some, and a mount in them, as a sandbox would; nothing is
// left of them. contained is box.Host's.
func tryNamespaces(contained bool) error {
	s, err := launch.NewSpawner(nil)
	if err != nil {
		return err
	}
	defer s.Close()
	p := launch.NewProgram(1)
	p.Do("make private", "/", unix.SYS_MOUNT, launch.Int(0), p.Str("/"), launch.Int(0),
		launch.Int(unix.MS_REC|unix.MS_PRIVATE), launch.Int(0))
	err = s.RunOnThread(p, setup.Namespaces)
	// In another user namespace the limit may be that of one further out, and no
	// more will ever be allowed (bwrap --disable-userns).
	if errors.Is(err, unix.ENOSPC) && !contained && sysctl("user/max_user_namespaces") != "0" {
		err = fmt.Errorf("%w: %w", box.ErrShort, err)
	}
	return err
}
