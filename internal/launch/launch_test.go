//go:build linux && (amd64 || arm64)

package launch_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

func spawner(t testing.TB) *launch.Spawner {
	t.Helper()
	s, err := launch.NewSpawner(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func exit(p *launch.Program, code int) { p.Do("exit", "", unix.SYS_EXIT_GROUP, launch.Int(code)) }

func waitStatus(t testing.TB, pid int) syscall.WaitStatus {
	t.Helper()
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, unix.WALL, nil)
		if err == nil {
			return syscall.WaitStatus(ws)
		}
		if err != unix.EINTR {
			t.Fatalf("wait4(%d): %v", pid, err)
		}
	}
}

func TestResultsFlowBetweenSteps(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := launch.NewProgram(8)
	fd := p.Do("dup", "", unix.SYS_FCNTL, launch.Int(w.Fd()), launch.Int(unix.F_DUPFD_CLOEXEC), launch.Int(100)).Slot()
	p.Do("write", "", unix.SYS_WRITE, fd.Arg(), p.Str("hello"), launch.Int(5))
	if err := spawner(t).Run(p, 0); err != nil {
		t.Fatal(err)
	}
	if fd.Int() < 100 {
		t.Errorf("slot holds %d, want a descriptor from 100 on", fd.Int())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	n, err := r.Read(buf)
	if err != nil || string(buf[:n]) != "hello" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
}

func TestFailingStepIsNamed(t *testing.T) {
	p := launch.NewProgram(2)
	p.Do("enter", "/no/such/dir", unix.SYS_CHDIR, p.Str("/no/such/dir"))
	err := spawner(t).Run(p, 0)
	var step *launch.StepError
	if !errors.As(err, &step) || !errors.Is(err, unix.ENOENT) {
		t.Fatalf("got %v, want a StepError with ENOENT", err)
	}
	if got, want := err.Error(), `enter "/no/such/dir": chdir: no such file or directory`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFailingStepOfANestedProgramIsNamed(t *testing.T) {
	inner := launch.NewProgram(1)
	inner.Do("open", "/nope", unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), inner.Str("/nope"), launch.Int(0))
	outer := launch.NewProgram(2)
	outer.Clone("fork", launch.CloneArgs{Flags: unix.CLONE_VFORK}, inner)
	err := spawner(t).Run(outer, 0)
	if !errors.Is(err, unix.ENOENT) {
		t.Fatalf("got %v, want ENOENT", err)
	}
}

func TestToleratedFailureGoesOn(t *testing.T) {
	p := launch.NewProgram(2)
	try := p.Do("enter", "/nope", unix.SYS_CHDIR, p.Str("/nope")).Try()
	umask := p.Do("umask", "", unix.SYS_UMASK, launch.Int(0o27)).Slot()
	if err := spawner(t).Run(p, 0); err != nil {
		t.Fatal(err)
	}
	if got := syscall.Errno(try.Errno()); got != unix.ENOENT {
		t.Errorf("errno %v, want ENOENT", got)
	}
	if umask.Int() < 0 {
		t.Error("the step after a tolerated failure did not run")
	}
}

// Expect compares the values that memory and slot hold when it runs.
func TestExpect(t *testing.T) {
	s := spawner(t)
	for _, c := range []struct {
		want  int
		errno syscall.Errno
	}{{7, 0}, {-1, syscall.EAGAIN}} {
		p := launch.NewProgram(4)
		filled, addr := launch.Out[[4]uint32](p)
		slot := p.NewSlot()
		slot.Set(c.want)
		filled[3] = 7
		p.Expect("compare", "", addr, 12, slot.Arg())
		if err := s.Run(p, 0); c.errno == 0 && err != nil || c.errno != 0 && !errors.Is(err, c.errno) {
			t.Errorf("%d: %v, want %v", c.want, err, c.errno)
		}
	}
}

func TestNestedCloneIsAChildOfTheHost(t *testing.T) {
	inner := launch.NewProgram(1)
	exit(inner, 42)
	outer := launch.NewProgram(2)
	pid := outer.Clone("fork", launch.CloneArgs{Flags: unix.CLONE_PARENT}, inner)
	if err := spawner(t).Run(outer, 0); err != nil {
		t.Fatal(err)
	}
	if ws := waitStatus(t, pid.Int()); ws.ExitStatus() != 42 {
		t.Errorf("exit status %d, want 42", ws.ExitStatus())
	}
}

// gate runs a command through the gate and returns its wait status and the errno that
// the gate reported.
func gate(t *testing.T, paths, argv, env []string) (syscall.WaitStatus, syscall.Errno) {
	t.Helper()
	image, err := launch.Gate()
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := launch.NewProgram(4)
	p.Do("report", "", unix.SYS_DUP3, launch.Int(w.Fd()), launch.Int(200), launch.Int(0))
	p.Phase(launch.Exec)
	p.Do("exec", "gate", unix.SYS_EXECVEAT, launch.Int(image.Fd()), p.Str(""),
		p.Strings(launch.GateArgs(200, paths, argv)), p.Strings(launch.GateEnv(launch.Cookie{}, env)),
		launch.Int(unix.AT_EMPTY_PATH))
	pid, err := spawner(t).Start(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Stamps(); len(s) != 3 || s[2].Phase != launch.Exec || s[2].Cycles <= s[0].Cycles {
		t.Errorf("stamps %v", s)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	errno := syscall.Errno(0)
	if len(report) == 8 {
		errno = syscall.Errno(binary.NativeEndian.Uint64(report))
	}
	return waitStatus(t, pid), errno
}

func TestGate(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plain := dir + "/plain"
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run := []string{"guest", "", "-x", ""} // empty arguments are arguments
	env := []string{"LAUNCH_TEST_GUEST=1"}
	for _, c := range []struct {
		name   string
		paths  []string
		status int
		errno  syscall.Errno
	}{
		{"the only path", []string{self}, 42, 0},
		{"the first that exists", []string{dir + "/no", plain + "/x", self}, 42, 0},
		{"past one that may not be executed", []string{plain, self}, 42, 0},
		{"none exists", []string{dir + "/no", plain + "/x"}, 127, unix.ENOENT},
		{"none may be executed", []string{dir + "/no", plain, dir + "/no"}, 127, unix.EACCES},
		{"a directory", []string{dir}, 127, unix.EACCES},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws, errno := gate(t, c.paths, run, env)
			if ws.ExitStatus() != c.status || errno != c.errno {
				t.Errorf("status %v, errno %v; want exit %d, %v", ws, errno, c.status, c.errno)
			}
		})
	}
}

// TestMain plays the guest of TestGate: it exits with 42 if its arguments,
// environment, descriptors and signal mask are right.
func TestMain(m *testing.M) {
	if os.Getenv("LAUNCH_TEST_GUEST") == "" {
		os.Exit(m.Run())
	}
	_, err := unix.FcntlInt(200, unix.F_GETFD, 0)
	var mask unix.Sigset_t
	merr := unix.PthreadSigmask(unix.SIG_SETMASK, nil, &mask)
	if !slices.Equal(os.Args, []string{"guest", "", "-x", ""}) || err != unix.EBADF ||
		merr != nil || mask != (unix.Sigset_t{}) {
		fmt.Fprintf(os.Stderr, "args %q, report %v, mask %v %v\n", os.Args, err, mask, merr)
		os.Exit(1)
	}
	os.Exit(42)
}

// A pause process lives until the last writing end of its pipe is gone.
func TestPauseEndsWithItsPipe(t *testing.T) {
	image, err := launch.Pause()
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	rfd := r.Fd() // blocking, as pause expects
	p := launch.NewProgram(4)
	p.Do("stdin", "", unix.SYS_DUP3, launch.Int(rfd), launch.Int(0), launch.Int(0))
	p.Do("exec", "pause", unix.SYS_EXECVEAT, launch.Int(image.Fd()), p.Str(""),
		p.Strings([]string{"pause"}), p.Strings(nil), launch.Int(unix.AT_EMPTY_PATH))
	pid, err := spawner(t).Start(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	// Ordinary signals are blocked in it.
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGCHLD} {
		if err := unix.PidfdSendSignal(pidfd, sig, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 50); n != 0 {
		t.Fatalf("pause ended early: %v, %v", n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	done := make(chan syscall.WaitStatus, 1)
	go func() { done <- waitStatus(t, pid) }()
	select {
	case ws := <-done:
		if ws.ExitStatus() != 0 {
			t.Errorf("pause ended with %v", ws)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("pause outlived its pipe")
	}
}

func TestClosedSpawnerRefuses(t *testing.T) {
	s := spawner(t)
	s.Close()
	if err := s.Run(launch.NewProgram(0), 0); !errors.Is(err, launch.ErrStopped) {
		t.Errorf("got %v, want ErrStopped", err)
	}
}

func TestProgramPrintsItsCalls(t *testing.T) {
	inner := launch.NewProgram(1)
	inner.Do("root", "/", unix.SYS_CHDIR, inner.Str("/"))
	p := launch.NewProgram(2)
	fd := p.Do("open", "/x", unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), p.Str("/x"), launch.Int(unix.O_RDONLY)).Slot()
	p.Do("close", "", unix.SYS_CLOSE, fd.Arg()).Try()
	p.Clone("fork", launch.CloneArgs{}, inner)
	want := "openat(AT_FDCWD, \"/x\", 0x0, 00) = $1\t# open /x\n" +
		"close($1) ?\t# close\n" +
		"clone3(…, 88) = $2\t# fork\n" +
		"    chdir(\"/\")\t# root /\n"
	if got := p.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
