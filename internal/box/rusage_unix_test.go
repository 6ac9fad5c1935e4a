//go:build darwin || linux

package box

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestExitOf(t *testing.T) {
	cmd := exec.Command(os.Args[0]) // the only program that an emulated machine has for sure
	cmd.Env = append(os.Environ(), exitHelper+"=1")
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	status, usage := cmd.ProcessState.Sys().(syscall.WaitStatus), cmd.ProcessState.SysUsage().(*syscall.Rusage)
	e := ExitOf(status, *usage)
	if e.Status.ExitStatus() != 3 || e.User != cmd.ProcessState.UserTime() || e.System != cmd.ProcessState.SystemTime() {
		t.Errorf("%+v, want %v", e, cmd.ProcessState)
	}
	// A program has a megabyte, and not a thousand.
	if e.MaxRSS < 1<<18 || e.MaxRSS > 1<<30 {
		t.Errorf("%d bytes", e.MaxRSS)
	}
}
