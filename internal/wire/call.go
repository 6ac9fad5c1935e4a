package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/jsoncount"
)

// valueSize is how many bytes each JSON value in the arguments counts for in the
// semaphore, in addition to its text: decoded, values take more memory than text.
const valueSize = 32

// call is a call from its request to its answer.
type call struct {
	broker.Call
	run      *Run
	id       json.RawMessage // the guest's
	known    bool            // there is such a tool
	progress bool            // the guest asked for it
	accepted bool            // counts as a call of the run; guarded by run.mu
	size     int             // bytes it takes while it is served
	begin    time.Time
	ctx      context.Context
	cancel   context.CancelCauseFunc
	once     sync.Once
}

var errCanceled = errors.New("canceled by the guest")

// call reads a call, and returns it if it is to be served. It reports whether to read
// on. It waits for the semaphore, so the guest is not read from while it has too many
// calls in flight.
func (r *Run) call(id json.RawMessage, p *params, size int) (_ *call, more bool) {
	if e := r.refuseClosed(); e != nil {
		return nil, r.link.answer(id, nil, e)
	}
	if r.refusals() > maxRefusals {
		return nil, false
	}
	c := &call{run: r, id: id, begin: time.Now(), Call: broker.Call{Run: r.id}}
	if e := c.decode(p); e != nil {
		return nil, r.link.refuse(id, e)
	}
	values, _ := jsoncount.Count(c.Arguments)
	c.size = size + values*valueSize
	notFound := c.resolve()
	if e := r.register(c); e != nil { // from here on End may finish the call
		return nil, r.link.refuse(id, e)
	}
	if notFound != nil {
		c.finish(nil, notFound)
		return nil, true
	}
	if err := r.inflight.acquire(r.ctx, c.size); err != nil {
		c.finish(nil, broker.Errorf(broker.CodeCanceled, "%s: %v", c.FullName(), context.Cause(r.ctx)))
		return nil, true
	}
	if !r.admit() {
		r.inflight.release(c.size)
		c.finish(nil, broker.Errorf(broker.CodeCanceled, "%v", errRunEnded))
		return nil, true
	}
	return c, true
}

func (c *call) decode(p *params) *broker.Error {
	if json.Unmarshal(p.Name, &c.Name) != nil || c.Name == "" {
		return broker.Errorf(broker.CodeParams, "tools/call requires a string name")
	}
	if p.Namespace != nil && json.Unmarshal(p.Namespace, &c.Namespace) != nil {
		return broker.Errorf(broker.CodeParams, "namespace must be a string")
	}
	c.progress = string(p.Progress) == "true"
	if c.Arguments = json.RawMessage(p.Arguments); c.Arguments == nil {
		c.Arguments = json.RawMessage("{}")
	}
	return nil
}

// resolve gives the call the exact name of its tool. For an unknown tool it cuts the
// guest's name, which may be long.
func (c *call) resolve() error {
	t, err := c.run.set.Lookup(c.Namespace, c.Name)
	if err != nil {
		c.Namespace = strings.Clone(c.Namespace[:min(len(c.Namespace), 64)])
		c.Name = strings.Clone(c.Name[:min(len(c.Name), 129)])
		return err
	}
	c.known = true
	c.Namespace, c.Name = cutName(t.Name)
	return nil
}

// register makes the guest's id known, and gives the call an ID of the host's.
func (r *Run) register(c *call) *broker.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errCompleted()
	}
	if r.calls[string(c.id)] != nil {
		return broker.Errorf(broker.CodeInvalidRequest, "id %s is in use", c.id)
	}
	r.calls[string(c.id)] = c
	r.issued++
	c.ID = r.id + "." + strconv.Itoa(r.issued)
	var ctx context.Context
	ctx, c.cancel = context.WithCancelCause(r.ctx)
	var send func(json.RawMessage) error
	if c.progress {
		send = c.sendProgress
	}
	c.ctx = broker.WithProgress(ctx, send)
	return nil
}

// serve makes the call and answers it. It returns when the tool has returned.
func (c *call) serve() {
	defer func() {
		c.cancel(nil)
		c.run.inflight.release(c.size)
		c.run.serving.Done()
	}()
	defer func() { // if nothing has answered
		c.finish(nil, broker.Errorf(broker.CodeInternal, "permission hook called runtime.Goexit"))
	}()
	set := c.run.set
	err := set.Check(c.ctx, c.Call)
	if err == nil {
		err = c.run.accept(c)
	}
	if err != nil {
		c.finish(nil, err)
		return
	}
	set.Invoke(c.ctx, c.Call, c.run.link.limits.CallTime, c.finish)
}

// accept counts the call, if the run may make another one. It comes after Check, since
// refused calls do not count.
func (r *Run) accept(c *call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errCompleted()
	}
	if r.report.Accepted >= r.link.limits.Calls {
		r.report.Exceeded = true
		return broker.Errorf(broker.CodeLimit, "tool-call limit exceeded (%d)", r.link.limits.Calls)
	}
	r.report.Accepted++
	c.accepted = true
	return nil
}

// finish answers the call and records it. Only the first call of finish counts.
func (c *call) finish(value json.RawMessage, err error) {
	c.once.Do(func() {
		rec := broker.Record{Call: c.Call, Started: c.begin}
		var line []byte
		if err == nil {
			line, err = c.encode(value, &rec)
			value = nil // while the guest does not read, only the line is kept
		}
		rec.Duration = time.Since(c.begin)
		if c.known {
			c.run.link.setQuick(c.FullName(), rec.Duration < quick)
		}
		if err != nil {
			e := asError(err)
			rec.Code, rec.Error, rec.Panic = e.Code, e.Message, e.Panic
			if line = errorLine(c.id, e); len(line) > c.run.link.limits.Frame {
				line = errorLine(c.id, broker.Errorf(broker.CodeTooLarge, "the error message exceeds the frame limit"))
			}
		}
		// Before the answer: what the guest does after it may end the run.
		c.run.record(c, rec)
		_ = c.run.link.send(line) // the reader notices if the guest is gone
		c.run.set.Report(c.run.ctx, rec)
	})
}

// encode returns the answer with a value, and puts the value into the record.
func (c *call) encode(value json.RawMessage, rec *broker.Record) ([]byte, error) {
	const before, after = `{"value":`, "}}\n"
	b := bytes.NewBuffer(openResult(c.id, len(before)+len(value)+len(after)))
	b.WriteString(before)
	begin := b.Len()
	if err := json.Compact(b, value); err != nil || !utf8.Valid(value) {
		return nil, broker.Errorf(broker.CodeInternal, "%s returned invalid JSON", c.FullName())
	}
	end := b.Len()
	b.WriteString(after)
	if limit := c.run.link.limits.Frame; b.Len() > limit {
		const text = "the value of %s takes %d bytes; the limit is %d"
		return nil, broker.Errorf(broker.CodeTooLarge, text, c.FullName(), len(value), limit)
	}
	rec.Value = b.Bytes()[begin:end:end]
	rec.Bytes = len(before) + len(rec.Value) + 1
	return b.Bytes(), nil
}

// sendProgress notifies the guest of the call's progress.
func (c *call) sendProgress(value json.RawMessage) error {
	params := map[string]any{"id": c.id, "value": value}
	line := encode(notification{Version: "2.0", Method: "progress", Params: params})
	if len(line) > c.run.link.limits.Frame {
		return broker.Errorf(broker.CodeTooLarge, "progress: the value exceeds the frame limit")
	}
	if err := c.run.link.send(line); err != nil {
		return errors.Join(broker.ErrClosed, err)
	}
	return nil
}
