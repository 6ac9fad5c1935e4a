//go:build linux

package attack_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// capNetRaw gives a program CAP_NET_RAW: struct vfs_cap_data, revision 2, effective.
var capNetRaw = []byte{1, 0, 0, 2, 0, 1 << 5, 19: 0}

// corpusHost is what guests must not reach, although it belongs to their account on the host.
type corpusHost struct {
	dir       string   // the cases
	workspace string   // of the sandboxes
	readonly  string   // mounted read-only
	special   string   // programs with privileges, for root; else ""
	account   string   // the account's own
	env       []string // what there is, named
	ask       io.Writer
	answers   *bufio.Scanner
}

// asGuest returns a command that runs on the host as the account of guests. setpriv changes the user:
// SysProcAttr.Credential would clear the dumpable flag of this process, whose memory its child shares.
func asGuest(name string, args ...string) *exec.Cmd {
	args = append([]string{name}, args...)
	if os.Geteuid() == 0 {
		id := strconv.Itoa(testbox.Nobody)
		args = append([]string{"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONDONTWRITEBYTECODE=1",
		"LC_ALL=C.UTF-8"}
	return cmd
}

func startCorpusHost(t *testing.T) *corpusHost {
	t.Helper()
	testenv.Need(t, testenv.UserNS, testenv.Program("python3"))
	if os.Geteuid() == 0 {
		testenv.Need(t, testenv.Program("setpriv"))
	}
	base := testenv.Dir(t)
	h := &corpusHost{
		dir: base + "/cases", workspace: base + "/workspace", readonly: base + "/readonly", account: base + "/account",
	}
	if err := os.CopyFS(h.dir, os.DirFS(escapeDir)); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{h.workspace, h.readonly, h.account, h.account + "/tmp"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	python := interpreter(t)
	copyFile(t, python, h.account+"/python", 0o755)
	err := errors.Join(
		os.WriteFile(h.readonly+"/file", nil, 0o644),
		os.Symlink(h.account+"/secret", h.workspace+"/link"),
		os.Symlink("/etc", h.workspace+"/etc"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		for _, name := range []string{h.workspace, h.readonly, h.readonly + "/file", h.account, h.account + "/tmp",
			h.account + "/python"} {
			if err := os.Chown(name, testbox.Nobody, testbox.Nobody); err != nil {
				t.Fatal(err)
			}
		}
		h.special = base + "/privileged"
		if err := os.Mkdir(h.special, 0o755); err != nil {
			t.Fatal(err)
		}
		copyFile(t, python, h.special+"/setuid", 0o755)
		copyFile(t, python, h.special+"/capable", 0o755)
		err := errors.Join(
			os.Chmod(h.special+"/setuid", 0o755|os.ModeSetuid),
			unix.Setxattr(h.special+"/capable", "security.capability", capNetRaw, 0),
		)
		if err != nil {
			t.Fatal(err)
		}
	}
	h.serve(t)
	return h
}

// interpreter returns the python3 in the PATH of sandboxes, with links resolved.
func interpreter(t *testing.T) string {
	t.Helper()
	out, err := asGuest("python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, mode); err != nil {
		t.Fatal(err)
	}
}

// serve starts the process of the host that has everything, and keeps a descriptor open that every careless child
// inherits.
func (h *corpusHost) serve(t *testing.T) {
	t.Helper()
	leak, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0) // not O_CLOEXEC: that is the point
	if err != nil {
		t.Fatal(err)
	}
	cmd := asGuest(h.account+"/python", "-m", "lib.host", h.account)
	cmd.Dir, cmd.Stderr = h.dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends by that
		if err := errors.Join(cmd.Wait(), unix.Close(leak)); err != nil {
			t.Errorf("the host's side: %v", err)
		}
	})
	h.ask, h.answers = in, bufio.NewScanner(out)
	for h.answers.Scan() && h.answers.Text() != "" {
		h.env = append(h.env, h.answers.Text())
	}
	if len(h.env) == 0 {
		t.Fatal("the host's side says nothing")
	}
}

// visits returns how often someone has come to the servers of the host.
func (h *corpusHost) visits(t *testing.T) string {
	t.Helper()
	if _, err := fmt.Fprintln(h.ask); err != nil {
		t.Fatal(err)
	}
	if !h.answers.Scan() {
		t.Fatal("the host's side has ended")
	}
	return h.answers.Text()
}

func (h *corpusHost) has(name string) bool {
	for _, e := range h.env {
		if strings.HasPrefix(e, "HOST_"+name+"=") {
			return true
		}
	}
	return false
}

// view is where a case finds things.
type view struct{ cases, readonly, special, tmp string } // tmp "" is what TMPDIR says already

// onHost is the view from outside.
func (h *corpusHost) onHost() view { return view{h.dir, h.readonly, h.special, h.account + "/tmp"} }

// environment returns the variables that tell a case where things are.
func (h *corpusHost) environment(v view) []string {
	env := append([]string{
		"HOST_WORKSPACE=" + h.workspace, "HOST_READONLY=" + v.readonly, "HOST_PRIVILEGED=" +
			v.special, "PYTHONDONTWRITEBYTECODE=1",
	}, h.env...)
	if v.tmp != "" {
		env = append(env, "TMPDIR="+v.tmp)
	}
	return env
}

// outside runs a case on the host and returns its word.
func (h *corpusHost) outside(t *testing.T, c escapeCase) string {
	t.Helper()
	// A shell adopts the children that a case may leave.
	cmd := asGuest("sh", "-c", `python3 -S "$0"; r=$?; [ $r -lt 128 ] || kill -$((r - 128)) $$; exit $r`,
		filepath.Join(h.dir, c.name+".py"))
	cmd.Env = append(cmd.Env, h.environment(h.onHost())...)
	cmd.Dir = h.workspace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.wants("terminal") || c.wants("own-terminal") {
		_, tty := terminal(t)
		cmd.Stdin = tty
		cmd.SysProcAttr.Setctty = true
	}
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errOut, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	err := cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return unix.SignalName(s.Signal())
	}
	if err != nil {
		t.Fatalf("outside: %v\n%s%s", err, out.String(), errOut.String())
	}
	t.Logf("outside: %s\n%s", strings.TrimSpace(out.String()), errOut.String())
	return strings.TrimSpace(out.String())
}

// terminal opens a pseudoterminal, which the end of the test closes.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() }) // nothing is to be saved
	fd := int(ours.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}
