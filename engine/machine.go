package engine

import (
	"os"
	"syscall"
	"time"
)

// This file is what an operating system has to supply to be one that sandboxes
// can be made on. The rest of the engine knows no more of it than this, and
// openMachine, ProbeHost and a few functions of the system's own.

// machine is what all sandboxes of an Engine use.
type machine interface {
	start(*Plan) (box, error)
	diagnose() []Finding
	close() error // when all sandboxes have ended
}

// box is a running sandbox.
type box interface {
	plan() *Plan      // that it was made from, with its private directory in it
	timing() Timing   // of its start
	overlay() *layers // of the workspace; nil: it has none

	exec(execRequest) (process, error)
	terminal(WindowSize) (master, slave *os.File, err error)

	kill()       // everything in it; returns at once
	dying() bool // it is ending by itself
	wait() error // until nothing is left of it

	// enter and leave are around each command; enter is ErrClosed when the sandbox
	// is closing. guard is called once, with the first command: it has what the
	// engine enforces itself looked after.
	enter() error
	leave()
	guard(*Sandbox)

	measure() reading
	full() []fullLimit // private file systems without room
	hostOOM() bool     // the machine has run out of memory lately

	// firstLook and look are the watchdog's: when to look first, and what there
	// is now and when to look again.
	firstLook(watch) time.Duration
	look(watch) (sight, time.Duration)
}

// process is a command in a box.
type process interface {
	// started returns when the program runs, or why it could not be executed.
	// setupError is for who waits for the command's end anyhow, and calls wait, too.
	started() error
	setupError() error
	timing() Timing
	refused() []Refusal // of Seccomp.Audit

	signal(sig syscall.Signal, group bool) error
	killTree() error // it and what descends from it

	wait() (syscall.WaitStatus, rusage, error)
	release() error // when nothing can ask for a kill any more
}

// rusage is what a command, and the descendants that it waited for, have used
// (getrusage(2)).
type rusage struct {
	user, system time.Duration
	maxRSS       Bytes // of the largest of them
}
