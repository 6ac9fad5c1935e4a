package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
)

// Run is one job of a guest. Its methods are safe for concurrent use.
type Run struct {
	link     *Link
	set      *broker.Set
	tools    []toolInfo
	id       string
	job      []byte // jobInfo as JSON
	ctx      context.Context
	stop     context.CancelCauseFunc
	inflight *inflight
	done     chan struct{}  // closed with closed
	serving  sync.WaitGroup // calls being served; added to under mu, and not once closed is set

	mu       sync.Mutex
	closed   bool // nothing more is served
	answered bool // the guest has sent its result
	calls    map[string]*call
	recorded sync.Cond // signaled when calls becomes empty
	report   Report
	kept     int // bytes of arguments and values in report
	issued   int // call IDs
	refused  int // calls that were not let through
}

var errRunEnded = errors.New("the run has ended")

func newRun(ctx context.Context, l *Link, s *broker.Set) *Run {
	r := &Run{
		link: l, set: s, tools: []toolInfo{}, id: "r_" + randomHex(8),
		inflight: newInflight(l.limits), done: make(chan struct{}), calls: make(map[string]*call),
	}
	for _, t := range s.Tools() {
		namespace, name := cutName(t.Name)
		info := toolInfo{Name: name, Namespace: namespace, Description: t.Description, Schema: t.Schema, Output: t.Output}
		r.tools = append(r.tools, info)
	}
	r.recorded.L = &r.mu
	r.report = Report{Run: r.id, Tools: make(map[string]broker.ToolUsage)}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	return r
}

// cutName splits the full name of a tool.
func cutName(full string) (namespace, name string) {
	if before, after, ok := strings.Cut(full, "."); ok {
		return before, after
	}
	return "", full
}

func (r *Run) info(j Job) jobInfo {
	tools := r.tools
	if j.Brief {
		tools = []toolInfo{}
	}
	return jobInfo{
		Protocol: broker.Protocol, Run: r.id, Tools: tools, Limits: limitsInfo{Frame: r.link.limits.Frame},
		Pinned:   r.set.Namespace,
		Language: j.Language, Code: j.Code, Vars: j.Vars, Args: j.Args, Stateful: j.Stateful,
	}
}

// Done is closed when the guest has sent its result, or can no longer send it.
func (r *Run) Done() <-chan struct{} { return r.done }

// Answered reports whether the guest has sent its result.
func (r *Run) Answered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answered
}

// End ends the run and reports on it. Nothing more is served. Contexts of calls in
// flight are canceled; calls that do not return within 100 ms are recorded as canceled,
// and their tools keep running. It is safe to call twice.
func (r *Run) End() Report {
	r.close()
	briefly(r.serving.Wait)
	if late := r.pending(); len(late) > 0 {
		briefly(func() {
			var all sync.WaitGroup
			for _, c := range late {
				all.Go(func() { c.finish(nil, broker.Errorf(broker.CodeCanceled, "%v", errRunEnded)) })
			}
			all.Wait()
		})
	}
	r.link.mu.Lock()
	greeted := r.link.greeted
	r.link.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.calls) > 0 { // finish records a call before it sends the answer
		r.recorded.Wait()
	}
	report := r.report
	report.Greeted = greeted
	report.Calls = slices.Clone(report.Calls)
	return report
}

// briefly waits for f, for as long as a tool that ignores its context or a guest that
// does not read may delay the end of a run.
func briefly(f func()) {
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

func (r *Run) pending() (all []*call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		all = append(all, c)
	}
	return all
}

// close stops serving the guest and cancels the calls in flight.
func (r *Run) close() {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	if first {
		close(r.done)
	}
	r.stop(errRunEnded)
}

// admit adds a call to those that End waits for. It reports whether the run is open.
func (r *Run) admit() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.serving.Add(1)
	}
	return !r.closed
}

// refuseClosed returns the error for requests after the end of the run, or nil.
func (r *Run) refuseClosed() *broker.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errCompleted()
	}
	return nil
}

func errCompleted() *broker.Error {
	return broker.Errorf(broker.CodeCompleted, "run already completed")
}

// result accepts the first result and ends the run.
func (r *Run) result(id json.RawMessage, p *params) bool {
	if e := r.refuseClosed(); e != nil {
		return r.link.answer(id, nil, e)
	}
	var failed *broker.CodeError
	if p.Error != nil && json.Unmarshal(p.Error, &failed) != nil {
		e := broker.Errorf(broker.CodeParams, "error must be an object with type, message and traceback")
		return r.link.refuse(id, e)
	}
	if p.Run != nil && string(p.Run) != strconv.Quote(r.id) {
		return r.link.answer(id, nil, broker.Errorf(broker.CodeCompleted, "result of another run"))
	}
	r.mu.Lock()
	if failed != nil {
		r.report.Error = failed
	} else if p.Value != nil {
		r.report.Value = bytes.Clone(p.Value)
	}
	r.answered = true
	r.mu.Unlock()
	r.close()
	return r.link.answer(id, []byte("{}"), nil)
}

// cancelCall cancels the call with the guest's id, if it is in flight.
func (r *Run) cancelCall(id string) {
	r.mu.Lock()
	c := r.calls[id]
	r.mu.Unlock()
	if c != nil {
		c.cancel(errCanceled)
	}
}
