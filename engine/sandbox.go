package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// A Sandbox is a set of namespaces with their own process tree and files, in
// which any number of commands run, one after another or at once. Its methods
// may be called concurrently.
type Sandbox struct {
	engine *Engine
	plan   *Plan
	box    box
	done   chan struct{} // closed when nothing is left of it
	err    error         // why waiting for it failed; read after done

	mu        sync.Mutex
	closing   bool
	ended     bool // nothing is left of it
	discarded bool // by Discard
	running   map[*Cmd]struct{}
	added     atomic.Int64  // bytes to the workspace, when that was too much
	last      *reading      // what it has used, while there is no process to use more
	guarded   bool          // guard has been started
	runs      atomic.Int64  // names directories
	wake      chan struct{} // for the watchdog: a command has started

	commands sync.RWMutex // held for reading by each command, for writing by Commit
	reading  sync.RWMutex // held for reading by who reads layers, for writing by who closes them
}

// Plan is what the sandbox was made from.
func (s *Sandbox) Plan() *Plan { return s.plan }

// Timing says where the time of its start went.
func (s *Sandbox) Timing() Timing { return s.box.timing() }

// Done is closed when nothing is left of the sandbox: it was closed, a command
// reached its limit without Spec.Keep, or someone else killed it.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Command returns a Cmd to run a program in the sandbox. A name without a
// slash is looked for in the PATH of the command, inside.
func (s *Sandbox) Command(name string, args ...string) *Cmd {
	return s.CommandContext(context.Background(), name, args...)
}

// CommandContext is Command, with a context that kills the command, or the
// sandbox without Spec.Keep, when it is done.
func (s *Sandbox) CommandContext(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{Name: name, Args: args, sandbox: s, ctx: ctx}
}

// Close kills everything in the sandbox and returns when it is gone. It is
// safe to call twice.
func (s *Sandbox) Close() error {
	s.kill()
	<-s.done
	return s.err
}

func (s *Sandbox) kill() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.box.kill()
}

// ending tells whether the sandbox has been told to end, or has ended.
func (s *Sandbox) ending() bool {
	select {
	case <-s.done:
		return true
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// watch reaps the sandbox when it ends, for whatever reason.
func (s *Sandbox) watch() {
	s.err = s.box.wait()
	s.mu.Lock()
	s.ended = true
	drop := s.discarded
	s.mu.Unlock()
	if drop {
		s.err = errors.Join(s.err, s.drop())
	}
	s.engine.forget(s)
	close(s.done)
}
