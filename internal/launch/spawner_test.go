//go:build linux && (amd64 || arm64)

package launch_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// nobody is a user other than root that owns nothing.
var nobody = launch.Identity{UID: 65534, GID: 65534}

// owner returns the user and the group of a file.
func owner(t *testing.T, path string) launch.Identity {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return launch.Identity{UID: int(st.Uid), GID: int(st.Gid)}
}

// openDir returns a directory that anyone can write to.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "launch") // t.TempDir is within a directory of root's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func create(p *launch.Program, path string) *launch.Slot {
	flags := launch.Int(unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC)
	return p.Do("create", path, unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), p.Str(path), flags, launch.Int(0o600)).Slot()
}

func dumpable(t *testing.T) int {
	t.Helper()
	v, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAs(t *testing.T) {
	testenv.Need(t, testenv.Root)
	before := dumpable(t)
	dir := openDir(t)
	if err := launch.As(nobody, func() error { return os.WriteFile(dir+"/f", nil, 0o600) }); err != nil {
		t.Fatal(err)
	}
	if got := owner(t, dir+"/f"); got != nobody {
		t.Errorf("the file is %+v's, want %+v's", got, nobody)
	}
	closed := dir + "/closed"
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	err := launch.As(nobody, func() error { return os.WriteFile(closed+"/f", nil, 0o600) })
	if !errors.Is(err, unix.EACCES) {
		t.Errorf("a write that the user may not make: %v, want EACCES", err)
	}
	if err := os.WriteFile(closed+"/g", nil, 0o600); err != nil {
		t.Errorf("this process is no longer root: %v", err)
	}
	if got := dumpable(t); got != before {
		t.Errorf("dumpable is %d, was %d", got, before)
	}
}

func TestAsNeedsPrivileges(t *testing.T) {
	testenv.Need(t, testenv.User)
	err := launch.As(nobody, func() error { t.Error("f was called"); return nil })
	if !errors.Is(err, unix.EPERM) {
		t.Errorf("got %v, want EPERM", err)
	}
}

// The children of a spawner with an identity are that user's, and this process
// stays what it is.
func TestSpawnerBecomesItsIdentity(t *testing.T) {
	testenv.Need(t, testenv.Root)
	before := dumpable(t)
	dir := openDir(t)
	s, err := launch.NewSpawner(&nobody)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := launch.NewProgram(2)
	create(p, dir+"/f")
	if err := s.Run(p, 0); err != nil {
		t.Fatal(err)
	}
	if got := owner(t, dir+"/f"); got != nobody {
		t.Errorf("the file is %+v's, want %+v's", got, nobody)
	}
	if os.Geteuid() != 0 || dumpable(t) != before {
		t.Errorf("this process is user %d, dumpable %d, was %d", os.Geteuid(), dumpable(t), before)
	}
}

func TestSpawnerIdentityNeedsPrivileges(t *testing.T) {
	testenv.Need(t, testenv.User)
	if _, err := launch.NewSpawner(&nobody); !errors.Is(err, unix.EPERM) {
		t.Errorf("got %v, want EPERM", err)
	}
}

// A program that writes id maps needs the dumpable flag: it is on while the program
// runs, and then as before.
func TestDumpableIsRaisedForAProgram(t *testing.T) {
	s := spawner(t)
	before := dumpable(t)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	p := launch.NewProgram(2)
	during := p.Do("get dumpable", "", unix.SYS_PRCTL, launch.Int(unix.PR_GET_DUMPABLE)).Slot()
	err := s.RunOnThread(p, 0)
	s.Close() // the spawner answers before it lowers the flag
	after := dumpable(t)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err != nil || during.Int() != 1 || after != 0 {
		t.Errorf("dumpable %d during, %d after (%v), want 1 and 0", during.Int(), after, err)
	}
}

func TestCallerSpawner(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread's keyring is replaced
		s, err := launch.NewCallerSpawner()
		if err != nil {
			t.Error(err)
			return
		}
		p := launch.NewProgram(2)
		exit(p, 7)
		if err := s.Run(p, 0); err != nil {
			t.Error(err)
		}
		s.Close()
		s.Close() // safe twice
		if _, err := s.Start(launch.NewProgram(0), 0); !errors.Is(err, launch.ErrStopped) {
			t.Errorf("got %v, want ErrStopped", err)
		}
	}()
	<-done
}

// A program that joins the spawner's keyring finds it empty.
func TestKeyringIsEmpty(t *testing.T) {
	s := spawner(t)
	if s.Keyring() == "" {
		t.Skip("no keyrings here")
	}
	p := launch.NewProgram(4)
	p.Do("join", "", unix.SYS_KEYCTL, launch.Int(unix.KEYCTL_JOIN_SESSION_KEYRING), p.Str(s.Keyring()))
	_, buffer := launch.Out[[8]int32](p)
	read, ring := launch.Int(unix.KEYCTL_READ), launch.Int(unix.KEY_SPEC_SESSION_KEYRING)
	size := p.Do("read", "", unix.SYS_KEYCTL, read, ring, buffer, launch.Int(32)).Slot()
	if err := s.Run(p, 0); err != nil {
		t.Fatal(err)
	}
	if size.Int() != 0 {
		t.Errorf("the keyring has %d bytes of keys", size.Int())
	}
}

func TestClone2(t *testing.T) {
	inner := launch.NewProgram(1)
	exit(inner, 43)
	outer := launch.NewProgram(2)
	outer.UseClone2()
	pid := outer.Clone2("fork", unix.CLONE_PARENT, inner)
	if err := spawner(t).Run(outer, 0); err != nil {
		t.Fatal(err)
	}
	if ws := waitStatus(t, pid.Int()); ws.ExitStatus() != 43 {
		t.Errorf("exit status %d, want 43", ws.ExitStatus())
	}
}

// Flags that the kernel refuses are an UnsupportedError, or a StepError that keeps
// the errno.
func TestCloneThatFails(t *testing.T) {
	s := spawner(t)
	err := s.Run(launch.NewProgram(0), unix.CLONE_SIGHAND) // with CLONE_CLEAR_SIGHAND
	var u *launch.UnsupportedError
	if !errors.As(err, &u) || u.Feature == launch.FeatureClone3 || !errors.Is(err, unix.EINVAL) {
		t.Errorf("got %v, want an UnsupportedError about flags", err)
	}
	p := launch.NewProgram(0)
	p.StartInCgroup(1 << 20) // no such descriptor
	err = s.RunOnThread(p, 0)
	var step *launch.StepError
	if !errors.As(err, &step) || step.What != launch.StartProcess || !errors.Is(err, unix.EBADF) {
		t.Errorf("got %v, want a StepError of StartProcess with EBADF", err)
	}
}

// cgroupDir returns the directory of this process's cgroup of version 2.
func cgroupDir(t *testing.T) string {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.File("/sys/fs/cgroup/cgroup.controllers"))
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return "/sys/fs/cgroup" + strings.TrimSpace(path)
		}
	}
	t.Fatal("no cgroup of version 2 in /proc/self/cgroup")
	return ""
}

// Each program that starts in a cgroup gets a separate thread. More run at once here
// than are kept idle.
func TestStartInCgroup(t *testing.T) {
	dir, err := os.Open(cgroupDir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s, err := launch.NewSpawner(&nobody)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n = 8
	errs := make(chan error, n)
	for range n {
		go func() {
			p := launch.NewProgram(2)
			p.StartInCgroup(int(dir.Fd()))
			errs <- s.Run(p, 0)
		}()
	}
	for range n {
		if err := <-errs; errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			t.Skipf("%v may not start processes in this cgroup: %v", nobody, err)
		} else if err != nil {
			t.Error(err)
		}
	}
}

// A reaper whose parent it could signal is not confined: its kill(-1) would reach
// everybody, so it ends.
func TestReaperRefusesToRunUnconfined(t *testing.T) {
	image, err := launch.Reaper()
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	p := launch.NewProgram(2)
	p.Do("exec", "reaper", unix.SYS_EXECVEAT, launch.Int(image.Fd()), p.Str(""),
		p.Strings([]string{"reaper"}), p.Strings(nil), launch.Int(unix.AT_EMPTY_PATH))
	pid, err := spawner(t).Start(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ws := waitStatus(t, pid); ws.ExitStatus() != 3 {
		t.Errorf("the reaper ended with %v, want exit 3", ws)
	}
}

func TestIgnorableSignals(t *testing.T) {
	list := make(map[syscall.Signal]bool)
	for _, sig := range launch.IgnorableSignals() {
		list[sig] = true
	}
	for sig, want := range map[syscall.Signal]bool{
		unix.SIGHUP: true, unix.SIGPIPE: true, unix.SIGTERM: true, 31: true,
		unix.SIGKILL: false, unix.SIGSTOP: false, 40: false,
	} {
		if list[sig] != want {
			t.Errorf("%v: %v, want %v", sig, list[sig], want)
		}
	}
}
