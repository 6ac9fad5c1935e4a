package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/box"
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
	// needs none of its own. A sandbox then also dies with the thread that started
	// it: the caller must lock its goroutine to a thread that lives long enough, as
	// the main thread does. That thread's session keyring is replaced by an empty
	// one. It has no effect if guests run as another user.
	CallersThread bool
	// NoCgroups creates no cgroups: limits are enforced as on a machine without them,
	// and this process stays in the cgroup that it is in. See Open.
	NoCgroups bool
	// SystemdScope asks systemd for a cgroup of this process's own, if it has none in
	// which it may make others with limits to memory and processes, or only one that
	// systemd manages (cgroup.Place.Managed). It moves the process, with all that it
	// starts from then on, out of the limits of the cgroup it was in. If that fails,
	// so does Open. It needs busctl(1).
	SystemdScope bool
}

// An Engine starts sandboxes. It holds one thread that starts processes, some more
// if guests run as another user, and what sandboxes of one kind share. Its methods
// may be called concurrently.
type Engine struct {
	host     Host
	machines *machines

	mu     sync.Mutex
	boxes  map[*Sandbox]struct{}
	closed bool

	starting box.Uses // by sandboxes and commands that are being started
	uppers   sync.Map // sandboxes with changes to be discarded
}

// machines are the ways to start sandboxes here.
type machines struct {
	byLevel map[Level]box.Machine
	best    box.Machine
	open    []box.Machine // to be closed
}

// Open prepares an Engine. It starts no process, except with SystemdScope. Its
// error is an UnsupportedError if the kernel lacks something that every sandbox
// needs.
//
// An engine affects its host process:
//   - The first Start moves the process to a child cgroup of its own, if that is
//     needed to create cgroups with limits, and it stays there. NoCgroups
//     prevents that.
//   - While a process is being started PR_SET_DUMPABLE may be raised for a moment,
//     if guests run as another user.
//   - Each thread that starts processes has an empty session keyring. That is the
//     calling thread only with CallersThread.
//   - Sandboxes are children of this process, which must not wait for children that
//     it did not start itself (wait4(2) with -1).
func Open(o Options) (*Engine, error) {
	if o.Host == nil {
		h, err := ProbeHost()
		if err != nil {
			return nil, err
		}
		o.Host = &h
	}
	if o.NoCgroups && o.SystemdScope {
		return nil, &Error{Op: "open engine", Err: invalid("NoCgroups and SystemdScope are mutually exclusive")}
	}
	h := *o.Host
	if err := h.check(); err != nil {
		return nil, &Error{Op: "open engine", Err: err}
	}
	if o.NoCgroups {
		h.Cgroup = cgroup.Place{Memory: h.Cgroup.Memory, Reason: "the engine was opened without cgroups"}
	} else if o.SystemdScope && (h.Cgroup.Managed() || !h.Cgroup.Has("memory", "pids")) {
		scoped, err := systemdScope(h.facts())
		if err != nil {
			return nil, &Error{Op: "open engine", Err: fromBox(err)}
		}
		h = Host(scoped)
	}
	ms, err := openMachines(h.facts(), o)
	if err != nil {
		return nil, &Error{Op: "open engine", Err: fromBox(err)}
	}
	return &Engine{host: h, machines: ms, boxes: make(map[*Sandbox]struct{})}, nil
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

// StartPlan makes the sandbox that a plan describes. The context bounds the start, not
// the life of the sandbox. The error is ErrChanged if a path of the host is not
// what it was when the plan was made. The caller closes the sandbox.
func (e *Engine) StartPlan(ctx context.Context, p *Plan) (*Sandbox, error) {
	s, err := e.startPlan(ctx, p)
	if err != nil {
		return nil, &Error{Op: "start sandbox", Path: p.Spec.Name, Err: err}
	}
	return s, nil
}

func (e *Engine) startPlan(ctx context.Context, p *Plan) (*Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m := e.machines.byLevel[p.Level]
	if m == nil {
		return nil, invalid("a plan for isolation %s, on %s", p.Level, e.host.OS)
	}
	if !e.starting.Begin() {
		return nil, ErrClosed
	}
	defer e.starting.End()
	started, err := m.Start(&p.config)
	if err != nil {
		return nil, fromBox(err)
	}
	s := newSandbox(e, p, started)
	if started.Layers != nil {
		e.uppers.Store(s, nil)
	}
	e.mu.Lock()
	e.boxes[s] = struct{}{}
	e.mu.Unlock()
	go s.reap()
	return s, nil
}

// Close ends every sandbox and waits until nothing is left of them, even of those
// that are being started. It is safe to call twice.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	if !first {
		return nil
	}
	e.starting.Refuse()
	for _, s := range e.sandboxes() {
		s.kill() // a guest may hold up a command that is being started
	}
	e.starting.Close()
	var errs []error
	for _, s := range e.sandboxes() {
		errs = append(errs, s.Close())
	}
	for s := range e.uppers.Range {
		errs = append(errs, s.(*Sandbox).Discard())
	}
	for _, m := range slices.Backward(e.machines.open) {
		errs = append(errs, fromBox(m.Close()))
	}
	return errors.Join(errs...)
}

func (e *Engine) sandboxes() []*Sandbox {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.boxes))
}
