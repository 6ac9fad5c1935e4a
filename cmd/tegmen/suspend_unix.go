//go:build linux || darwin

package main

import (
	"syscall"

	"github.com/tegmen-dev/tegmen/engine"
)

// stopSignal stops this process as sigSuspend would. Go's runtime keeps its handler for a
// signal that was asked for once, even after signal.Reset, so it takes one that nobody has
// asked for. Not SIGSTOP: that would stop a process for good that no shell can continue.
const stopSignal = syscall.SIGTTIN

// suspend stops a command's process group and then this process, as the terminal's key for
// it asks. It returns once the shell has continued the job, with the command running again.
func (o *options) suspend(cmd *engine.Cmd) {
	// Not with SIGTSTP: the kernel drops that in a session without a shell.
	_ = cmd.SignalGroup(syscall.SIGSTOP) // it may have ended
	o.console.leave()
	stopSelf(stopSignal)
	o.resume(cmd)
	_ = cmd.SignalGroup(syscall.SIGCONT)
}
