package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
)

// run is the life of a command: who may end it, why it was ended, and how it
// ended. A Cmd has one from its start on, and a Session one for its interpreter.
type run struct {
	sandbox *Sandbox
	process box.Process // nil: it could not be started
	began   time.Time
	timing  box.Timing

	cause atomic.Pointer[Outcome] // why the engine killed it; the first reason counts

	killing  sync.Mutex
	started  bool // under killing: process is set, or never will be
	released bool // under killing: there is nothing left to kill

	over   chan struct{} // closed when it has been reaped, or has not been started
	undo   []func()      // when it is over
	reaped chan struct{} // closed after over, if a goroutine reaps it; nil: Wait does
	exit   box.Exit
	at     time.Time // of its end
	err    error
}

// startPatience is how long after its deadline a command may take to be started:
// then it is a guest that holds it up, and the sandbox ends.
const startPatience = time.Second

// start starts a process in the sandbox. Its deadlines hold from before that on: a
// guest can delay an execve for ever.
func (r *run) start(ctx context.Context, wall time.Duration, req box.Request) error {
	s := r.sandbox
	r.began, r.over = time.Now(), make(chan struct{})
	s.commands.RLock() // until release
	if err := s.admit(r); err != nil {
		s.commands.RUnlock()
		return err
	}
	r.deadlines(ctx, wall)
	r.watchCPU()
	p, err := s.box.Exec(req)
	s.engine.starting.End()
	r.setProcess(p)
	if err != nil {
		r.finish()
		s.commands.RUnlock()
		if s.ending() && !errors.Is(err, ErrClosed) {
			err = errors.Join(ErrClosed, err)
		}
		return fromBox(err)
	}
	return nil
}

// await returns when the program runs, and has a goroutine reap it: a sandbox that
// is told to end waits for its commands to be reaped, so that cannot depend on
// when, or whether, someone calls Wait.
func (r *run) await() error {
	timing, err := r.process.Started()
	if err != nil {
		r.reap()
		return fromBox(errors.Join(err, r.err))
	}
	r.timing = timing
	r.reaped = make(chan struct{})
	go func() {
		r.reap()
		close(r.reaped)
	}()
	return nil
}

// wait returns when the run has been reaped. Its error is why the program could not
// be executed, if nobody has asked before.
func (r *run) wait() (err error) {
	if r.reaped != nil {
		<-r.reaped
		return nil
	}
	r.reap()
	r.timing, err = r.process.Started()
	return fromBox(err)
}

// reap waits for the process to end, and remembers how.
func (r *run) reap() {
	r.exit, r.err = r.process.Wait()
	r.at = time.Now()
	r.finish()
	r.err = fromBox(errors.Join(r.err, r.release()))
}

// finish ends what was to end the run.
func (r *run) finish() {
	r.sandbox.dismiss(r)
	close(r.over)
	for _, f := range r.undo {
		f()
	}
}

// release gives up what a kill would need; one that is under way ends first.
func (r *run) release() error {
	r.killing.Lock()
	defer r.killing.Unlock()
	r.released = true
	r.sandbox.commands.RUnlock()
	return r.process.Release()
}

// setProcess makes p the target of later kills. If a kill was already requested,
// it is delivered now.
func (r *run) setProcess(p box.Process) {
	r.killing.Lock()
	defer r.killing.Unlock()
	r.process, r.started = p, true
	if p != nil && r.cause.Load() != nil {
		r.killNow()
	}
}

// running is the process, once it has been started.
func (r *run) running() box.Process {
	r.killing.Lock()
	defer r.killing.Unlock()
	return r.process
}

// deadlines end the run when the context is done, or after some time.
func (r *run) deadlines(ctx context.Context, wall time.Duration) {
	stop := killAfter(ctx, wall, r.kill)
	r.undo = append(r.undo, stop)
}

// killAfter calls kill when the context is done, or after some time; stop prevents
// that.
func killAfter(ctx context.Context, wall time.Duration, kill func(Outcome)) (stop func()) {
	cancel := context.AfterFunc(ctx, func() { kill(endOf(ctx)) })
	if wall == UnlimitedTime {
		return func() { cancel() }
	}
	t := time.AfterFunc(wall, func() { kill(OutcomeTimeout) })
	return func() { t.Stop(); cancel() }
}

// blame records why the run is killed, unless there is a reason already.
func (r *run) blame(why Outcome) { r.cause.CompareAndSwap(nil, &why) }

// why is the reason, or "".
func (r *run) why() Outcome {
	if cause := r.cause.Load(); cause != nil {
		return *cause
	}
	return ""
}

// kill ends the run for a reason that goes into its Result. One that is just being
// started ends as soon as it has been: it is a Result as well.
func (r *run) kill(why Outcome) {
	r.blame(why)
	r.killing.Lock()
	defer r.killing.Unlock()
	if r.started {
		r.killNow()
		return
	}
	time.AfterFunc(startPatience, func() {
		r.killing.Lock()
		defer r.killing.Unlock()
		if !r.started {
			r.sandbox.kill()
		}
	})
}

// killNow is kill with r.killing held.
func (r *run) killNow() {
	switch {
	case !r.sandbox.plan.Spec.Keep:
		r.sandbox.kill()
	case r.process != nil && !r.released:
		_ = r.process.KillTree() // what is left is ending already
	}
}

// admit counts a run in.
func (s *Sandbox) admit(r *run) error {
	if !s.engine.starting.Begin() {
		return ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[r] = struct{}{}
	return nil
}

// watchCPU ends the run when it and all that descends from it have used more than
// Limits.CPUTime, and the second that the kernel gives on top. It looks when that
// could at the earliest be so, with all CPUs at work.
func (r *run) watchCPU() {
	limit := r.sandbox.plan.limits.CPUTime
	if limit == UnlimitedTime {
		return
	}
	limit += time.Second
	cpus := time.Duration(max(r.sandbox.engine.host.CPUs, 1))
	next := func(left time.Duration) time.Duration { return max(left/cpus, 10*time.Millisecond) }
	go box.Poll(r.over, nil, next(limit), func() time.Duration {
		left := limit
		if p := r.running(); p != nil {
			left -= p.Used().CPU
		}
		if left <= 0 {
			r.kill(OutcomeCPU)
			return 0
		}
		return next(left)
	})
}
