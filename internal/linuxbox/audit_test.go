//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"os"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// The audit answers as the filter would have, with a signal where the filter kills,
// and lists by name.
func TestAuditAnswers(t *testing.T) {
	testenv.Need(t, testenv.Program("cat"))
	filter, err := seccomp.Builtin("default", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	a := &audit{filter: filter, arch: "amd64", refused: make(map[box.Refusal]int)}
	const x86, arm, mount = 0xc000003e, 0x40000028, 165
	for i, c := range []struct {
		arch, nr uint32
		errno    syscall.Errno
		kills    bool
	}{
		{x86, mount, syscall.EPERM, false},
		{x86, mount, syscall.EPERM, false},
		{x86, 99999, syscall.ENOSYS, false},
		{arm, 1, syscall.ENOSYS, true},
	} {
		pid, pidfd := cat(t)
		r := a.answer(notification{id: uint64(i), pid: uint32(pid), arch: c.arch, nr: c.nr})
		if r != (response{id: uint64(i), errno: -int32(c.errno)}) {
			t.Errorf("%+v: %+v", c, r)
		}
		if !c.kills {
			if err := sendSignal(pidfd, syscall.SIGKILL); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
		status, _, err := waitFor(pidfd, pid, func() {})
		if err != nil || (status.Signal() == syscall.SIGSYS) != c.kills {
			t.Errorf("%+v: the process ended with %v, %v", c, status.Signal(), err)
		}
	}
	got := make(map[string]int)
	for _, r := range a.list() {
		got[r.Call+" "+r.Action] = r.Count
	}
	if len(got) != 3 || got["mount EPERM"] != 2 || got["unknown ENOSYS"] != 1 {
		t.Errorf("got %v", got)
	}
}

// Without an audit there is nothing to wait for, and the report is a pipe.
func TestNoAudit(t *testing.T) {
	filter, err := seccomp.Builtin("default", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*box.Config{{}, {Filter: filter}, {Audit: true}} {
		a := startAudit(c, nil, "amd64")
		a.wait()
		if a != nil || a.list() != nil {
			t.Errorf("%v, audited %v: %+v", c.Filter != nil, c.Audit, a)
		}
	}
	for audited, mode := range map[bool]os.FileMode{false: os.ModeNamedPipe, true: os.ModeSocket} {
		read, write, err := reportPipe(audited)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := write.Stat(); err != nil || st.Mode()&mode == 0 {
			t.Errorf("audited %v: %v, %v", audited, st.Mode(), err)
		}
		if err := write.Close(); err != nil {
			t.Error(err)
		}
		if audited && receive(read) != nil {
			t.Error("a listener of a command that has died")
		}
		if err := read.Close(); err != nil {
			t.Error(err)
		}
	}
}
