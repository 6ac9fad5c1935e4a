//go:build darwin || linux

package box

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestExitOf(t *testing.T) {
	testenv.Need(t, testenv.Program("sh"))
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; exit 3")
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	status, usage := cmd.ProcessState.Sys().(syscall.WaitStatus), cmd.ProcessState.SysUsage().(*syscall.Rusage)
	e := ExitOf(status, *usage)
	if e.Status.ExitStatus() != 3 || e.User != cmd.ProcessState.UserTime() || e.System != cmd.ProcessState.SystemTime() {
		t.Errorf("%+v, want %v", e, cmd.ProcessState)
	}
	// A shell has a megabyte, and not a thousand.
	if e.MaxRSS < 1<<18 || e.MaxRSS > 1<<30 {
		t.Errorf("%d bytes", e.MaxRSS)
	}
}
