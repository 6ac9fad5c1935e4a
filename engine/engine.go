package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// Options configure an Engine. The zero value is what most programs want.
type Options struct {
	// Host is what the machine can do; nil means ProbeHost.
	Host *Host
	// NoTemplates makes every sandbox from nothing. The engine otherwise keeps
	// the shared part of a file tree from the second sandbox of a kind on, and
	// some network namespaces and cgroups ready.
	NoTemplates bool
	// CallersThread starts sandboxes from the threads that call, so the engine
	// needs none of its own. A sandbox then also dies with the thread that
	// started it: the caller has locked its goroutine to one that lives long
	// enough, as the main thread does. That thread's session keyring is replaced
	// by an empty one. It has no effect where guests run as another user.
	CallersThread bool
	// SystemdScope asks systemd for a cgroup of its own for this process, where it
	// has none in which it may make others with limits to memory and processes, or
	// only one that systemd manages (cgroup.Place.Managed). It moves the process,
	// with all that it starts from then on, out of the limits of the cgroup it was
	// in. Where that fails, so does Open. It takes busctl(1).
	SystemdScope bool
}

// An Engine starts sandboxes. It holds one thread that starts processes, where
// guests in cgroups run as another user some more, and what sandboxes of one kind
// share. Its methods may be called concurrently.
type Engine struct {
	host    Host
	machine machine

	mu     sync.Mutex
	boxes  map[*Sandbox]struct{}
	closed bool

	starting sync.WaitGroup
	uppers   sync.Map // sandboxes with changes to be discarded
}

// Open prepares an Engine. It starts no process, but for SystemdScope. Its error is an
// UnsupportedError where the kernel lacks something that every sandbox needs.
func Open(o Options) (*Engine, error) {
	if o.Host == nil {
		h, err := ProbeHost()
		if err != nil {
			return nil, err
		}
		o.Host = &h
	}
	if at := o.Host.Cgroup; o.SystemdScope && (at.Managed() || !at.Has("memory", "pids")) {
		h, err := o.Host.scoped()
		if err != nil {
			return nil, &Error{Op: "open engine", Err: err}
		}
		o.Host = &h
	}
	m, err := openMachine(*o.Host, o)
	if err != nil {
		return nil, &Error{Op: "open engine", Err: err}
	}
	return &Engine{host: *o.Host, machine: m, boxes: make(map[*Sandbox]struct{})}, nil
}

// Compile is the function Compile for the engine's host.
func (e *Engine) Compile(s Spec) (*Plan, error) { return Compile(s, e.host) }

// Start compiles the Spec and starts the plan.
func (e *Engine) Start(ctx context.Context, s Spec) (*Sandbox, error) {
	p, err := e.Compile(s)
	if err != nil {
		return nil, err
	}
	return e.StartPlan(ctx, p)
}

// StartPlan makes a sandbox as a plan says. The context bounds the start, not
// the life of the sandbox. The error is ErrChanged when a path of the host is
// not what it was when the plan was made. The caller closes the sandbox.
func (e *Engine) StartPlan(ctx context.Context, p *Plan) (*Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Op: "start sandbox", Path: p.Spec.Name, Err: err}
	}
	if err := e.begin(); err != nil {
		return nil, &Error{Op: "start sandbox", Path: p.Spec.Name, Err: err}
	}
	defer e.starting.Done()
	box, err := e.machine.start(p)
	if err != nil {
		return nil, &Error{Op: "start sandbox", Path: p.Spec.Name, Err: err}
	}
	s := &Sandbox{engine: e, plan: box.plan(), box: box, done: make(chan struct{}), running: make(map[*Cmd]struct{}), wake: make(chan struct{}, 1)}
	if p.overlaid() {
		e.uppers.Store(s, nil)
	}
	e.mu.Lock()
	e.boxes[s] = struct{}{}
	e.mu.Unlock()
	go s.watch()
	return s, nil
}

// begin announces a start, which Close waits for. When it returns nil, the
// caller calls starting.Done.
func (e *Engine) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.starting.Add(1)
	return nil
}

// Close ends every sandbox and waits until nothing is left of them. Sandboxes
// being started when it is called end, too. It is safe to call twice.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	if !first {
		return nil
	}
	for _, s := range e.sandboxes() {
		s.kill() // a guest may hold up a command that is being started
	}
	e.starting.Wait()
	var errs []error
	for _, s := range e.sandboxes() {
		errs = append(errs, s.Close())
	}
	for s := range e.uppers.Range {
		errs = append(errs, s.(*Sandbox).Discard())
	}
	return errors.Join(append(errs, e.machine.close())...)
}

func (e *Engine) sandboxes() []*Sandbox {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.boxes))
}

func (e *Engine) forget(s *Sandbox) {
	e.mu.Lock()
	delete(e.boxes, s)
	e.mu.Unlock()
}
