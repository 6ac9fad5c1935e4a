//go:build linux

package compat

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

var tableFile = flag.String("table", "", "write the table of TestCPython, in Markdown, to `FILE`")

func TestMain(m *testing.M) { os.Exit(testbox.Main(m, nil)) }

// patience bounds one program.
const patience = 4 * time.Minute

// ended is how a program ended, inside or outside.
type ended struct {
	code        int
	out, errOut []byte
	took        time.Duration
}

func open(t *testing.T) *engine.Engine {
	t.Helper()
	testenv.Long(t)
	testenv.Need(t, testenv.UserNS)
	if os.Geteuid() == 0 {
		testenv.Need(t, testenv.Program("setpriv"))
	}
	return testbox.OpenWith(t, engine.Options{})
}

// asUser skips, as root, tests that take long and show nothing more than as an ordinary user: root's guests are nobody
// and confined in the same way.
func asUser(t *testing.T) {
	t.Helper()
	if os.Getenv("TEGMEN_TEST_ALL") == "" {
		testenv.Need(t, testenv.User)
	}
}

// inside runs a program in a sandbox.
func inside(box *engine.Sandbox, args ...string) (ended, error) {
	var out, errOut bytes.Buffer
	c := box.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr, c.Wall = &out, &errOut, patience
	res, err := c.Run()
	if err != nil {
		return ended{}, err
	}
	if res.Outcome != engine.OutcomeOK && res.Outcome != engine.OutcomeExit && res.Outcome != engine.OutcomeSignal {
		err = fmt.Errorf("inside, %s: %s\n%s", args[0], res.Outcome, tail(errOut.Bytes()))
	}
	return ended{res.ExitCode, out.Bytes(), errOut.Bytes(), res.Usage.Wall}, err
}

// outside runs a program on the host as the guest's account, with the
// environment that a sandbox has by default. Of the limits only one is made
// the same: that of descriptors, which machines set to anything.
//
// The change of user is setpriv's: SysProcAttr.Credential would clear the
// dumpable flag of this process, whose memory its child shares.
func outside(dir string, args ...string) (ended, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := []string{"/bin/sh", "-c", `ulimit -S -n 1024; umask 022; exec "$@"`, "sh"}
	if os.Geteuid() == 0 {
		id := strconv.Itoa(testbox.Nobody)
		command = append(command, "setpriv", "--reuid="+id, "--regid="+id, "--clear-groups")
	}
	command = append(command, args...)
	var out, errOut bytes.Buffer
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Stdout, c.Stderr = dir, &out, &errOut
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "TMPDIR=" + dir,
		"LANG=C.UTF-8"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	kill := func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Cancel, c.WaitDelay = kill, time.Second
	begin := time.Now()
	err := c.Run()
	took := time.Since(begin)
	if c.Process != nil {
		_ = kill() // what it left behind, most often nothing
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ended{}, fmt.Errorf("outside, %s: %w\n%s", args[0], ctx.Err(), tail(errOut.Bytes()))
	case err != nil && !errors.As(err, &exit):
		return ended{}, fmt.Errorf("outside, %s: %w", args[0], err)
	}
	code := c.ProcessState.ExitCode()
	if s, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		code = 128 + int(s.Signal())
	}
	return ended{code, out.Bytes(), errOut.Bytes(), took}, nil
}

// directory makes a directory that the account of guests owns.
func directory(t *testing.T) string {
	t.Helper()
	dir := testenv.Dir(t)
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, testbox.Nobody, testbox.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// text returns the end of its output, where the reason stands.
func (e ended) text() string { return string(tail(slices.Concat(e.out, e.errOut))) }

func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }
