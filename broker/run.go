package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Run is one job of a guest. Its methods may be called concurrently.
type Run struct {
	link    *Link
	catalog *catalog
	job     Job
	id      string
	hello   []byte // what the guest is told of it
	ctx     context.Context
	stop    context.CancelCauseFunc
	room    *room         // for calls that are being served
	done    chan struct{} // closed when its result is there, or never comes
	serving sync.WaitGroup

	mu     sync.Mutex
	closed bool // nothing is served any more
	given  bool // the guest has given its result
	calls  map[string]*call
	// settled tells that there are no calls which are not on record.
	settled sync.Cond
	report  Report
	kept    int // bytes of arguments and values in the report
	issued  int // ids of calls
	refused int // calls that were not let through
}

// Report is what has become of a run.
type Report struct {
	Run     string // its id
	Greeted bool   // the guest has said hello
	// Value is what the run returned, as JSON; nil when it returned nothing.
	Value json.RawMessage
	// Error is how the code failed; nil when it did not, or did not say so.
	Error *CodeError
	// Calls lists the calls in the order in which they were over: ten thousand, of
	// which a thousand that were refused. Arguments and values are kept up to a
	// frame's size in all, and then are nil; errors, up to 4 KiB each.
	Calls []Record
	// Accepted is how many calls were let through, and Tools what they came to,
	// by full name.
	Accepted int
	Tools    map[string]ToolUsage
	// Exceeded is set when a call was refused for Limits.Calls.
	Exceeded bool
}

// ToolUsage is what the calls of one tool came to.
type ToolUsage struct {
	Calls  int           // that were let through
	Failed int           // of these
	Time   time.Duration // of all together
}

// CodeError is how a guest's code failed: an exception that nothing caught.
type CodeError struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

func (e *CodeError) Error() string { return e.Type + ": " + e.Message }

var errRunOver = errors.New("the run is over")

func newRun(ctx context.Context, l *Link, c *catalog, j Job) *Run {
	r := &Run{
		link: l, catalog: c, job: j, id: "r_" + randomHex(8),
		room: newRoom(l.limits), done: make(chan struct{}), calls: make(map[string]*call),
	}
	r.settled.L = &r.mu
	r.report = Report{Run: r.id, Tools: make(map[string]ToolUsage)}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	return r
}

func (r *Run) info() jobInfo {
	tools := r.catalog.infos
	if r.job.Brief {
		tools = []toolInfo{}
	}
	return jobInfo{
		Protocol: Protocol, Run: r.id, Tools: tools, Limits: limitsInfo{Frame: r.link.limits.Frame},
		Pinned: r.catalog.set.Namespace, Language: r.job.Language, Code: r.job.Code, Vars: r.job.Vars, Args: r.job.Args, Stateful: r.job.Stateful,
	}
}

// Done is closed when the guest has given its result, or cannot any more.
func (r *Run) Done() <-chan struct{} { return r.done }

// Answered tells whether the guest has given its result.
func (r *Run) Answered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.given
}

// End ends the run: nothing more is served, calls that are being served have
// their contexts canceled, and get a little time to return.
func (r *Run) End() Report {
	r.over()
	shortly(r.serving.Wait)
	if late := r.pending(); len(late) > 0 {
		shortly(func() {
			var all sync.WaitGroup
			for _, c := range late {
				all.Go(func() { c.finish(nil, refuse(CodeCanceled, "%v", errRunOver)) })
			}
			all.Wait()
		})
	}
	r.link.mu.Lock()
	greeted := r.link.greeted
	r.link.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.calls) > 0 { // what is put on record before the guest is told
		r.settled.Wait()
	}
	report := r.report
	report.Greeted = greeted
	report.Calls = slices.Clone(report.Calls)
	return report
}

// shortly waits for f, but no longer than a tool that does not heed its context,
// or a guest that does not read, may hold up the end of a run.
func shortly(f func()) {
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	patience := time.NewTimer(100 * time.Millisecond)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
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

// over closes the run to the guest.
func (r *Run) over() {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	if first {
		close(r.done)
	}
	r.stop(errRunOver)
}

// open is an error when the run is over.
func (r *Run) open() *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return refuse(CodeCompleted, "run already completed")
	}
	return nil
}

// result takes the first result, and ends the run.
func (r *Run) result(id json.RawMessage, p *params) bool {
	if err := r.open(); err != nil {
		return r.link.answer(id, nil, err)
	}
	var failed *CodeError
	if p.Error != nil && json.Unmarshal(p.Error, &failed) != nil {
		return r.link.refuse(id, refuse(CodeParams, "error has to be an object with type, message and traceback"))
	}
	if p.Run != nil && string(p.Run) != strconv.Quote(r.id) {
		return r.link.answer(id, nil, refuse(CodeCompleted, "the result of another run"))
	}
	r.mu.Lock()
	if failed != nil {
		r.report.Error = failed
	} else if p.Value != nil {
		r.report.Value = bytes.Clone(p.Value)
	}
	r.given = true
	r.mu.Unlock()
	r.over()
	return r.link.answer(id, []byte("{}"), nil)
}

// cancelCall ends the call with the guest's id, if it is being served.
func (r *Run) cancelCall(id string) {
	r.mu.Lock()
	c := r.calls[id]
	r.mu.Unlock()
	if c != nil {
		c.cancel(errCanceled)
	}
}
