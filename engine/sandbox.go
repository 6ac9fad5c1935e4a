package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// A Sandbox is a set of namespaces with their own process tree and files, in
// which any number of commands run, one after another or at once. Its methods
// may be called concurrently.
type Sandbox struct {
	engine  *Engine
	plan    *Plan
	box     box.Box
	timing  box.Timing
	textDir string        // in which commands have text files; "": texts are descriptors
	layers  *box.Layers   // of an overlay
	done    chan struct{} // closed when nothing is left of it
	err     error         // why waiting for it failed; read after done

	mu        sync.Mutex
	closing   bool
	ended     bool // nothing is left of it
	discarded bool // by Discard
	running   map[*run]struct{}
	held      []Held
	watched   bool         // limits are being watched
	added     atomic.Int64 // bytes to the workspace, when that was too much
	runs      atomic.Int64 // names directories

	commands sync.RWMutex // held for reading by each command, for writing by Commit
	reading  sync.RWMutex // held for reading while layers are read, for writing while they are closed
}

func newSandbox(e *Engine, p *Plan, started *box.Started) *Sandbox {
	s := &Sandbox{
		engine: e, plan: p.in(started.Private), box: started.Box, timing: started.Timing, layers: started.Layers,
		done: make(chan struct{}), running: make(map[*run]struct{}),
	}
	if started.TextFiles {
		s.textDir = started.Private
	}
	return s
}

// Plan returns what the sandbox was made from.
func (s *Sandbox) Plan() *Plan { return s.plan }

// Timing says where the time of its start went.
func (s *Sandbox) Timing() Timing { return Timing(s.timing) }

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
	return &Cmd{Path: name, Args: append([]string{name}, args...), sandbox: s, ctx: ctx}
}

// Close kills everything in the sandbox and returns when it is gone. It is
// safe to call twice.
func (s *Sandbox) Close() error {
	s.kill()
	<-s.done
	return s.err
}

// Held lists what has been made at protected paths of the workspace so far
// (ProtectWatch), of all commands: at most 10,000. After Close it has what processes
// made that commands had left behind, too.
func (s *Sandbox) Held() ([]Held, error) {
	_, err := s.newlyHeld()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.held), err
}

// maxHeld bounds Sandbox.held: guests can make any number.
const maxHeld = 10_000

// newlyHeld is what nobody has been told of yet.
func (s *Sandbox) newlyHeld() (held []Held, err error) {
	list, err := s.box.Held()
	for _, h := range list {
		held = append(held, Held{Path: h.Path, Name: h.Name, Why: h.Why, Action: HeldAction(h.Action)})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, held[:min(len(held), maxHeld-len(s.held))]...)
	return held, fromBox(err)
}

func (s *Sandbox) kill() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.box.Kill()
}

// ending reports whether the sandbox has been told to end, or has ended.
func (s *Sandbox) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing || s.ended
}

// reap waits for the sandbox's end, for whatever reason.
func (s *Sandbox) reap() {
	s.err = fromBox(s.box.Wait())
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

// dismiss counts it out.
func (s *Sandbox) dismiss(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, r)
}

// newTextDir names a directory for the texts of one command; "" if they are
// descriptors.
func (s *Sandbox) newTextDir() string {
	if s.textDir == "" {
		return ""
	}
	return filepath.Join(s.textDir, fmt.Sprintf("run-%d", s.runs.Add(1)))
}

func (e *Engine) forget(s *Sandbox) {
	e.mu.Lock()
	delete(e.boxes, s)
	e.mu.Unlock()
}
