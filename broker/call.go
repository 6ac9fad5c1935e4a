package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// call is one call that is being served.
type call struct {
	Call
	run      *Run
	tool     *tool
	id       json.RawMessage // the guest's
	progress bool            // the guest wants to know
	accepted bool            // under the run's mu
	size     int             // bytes it may take up while it is served
	values   int             // in its arguments
	members  int             // of the objects in them
	begin    time.Time
	ctx      context.Context
	cancel   context.CancelCauseFunc
	once     sync.Once
}

var (
	errCanceled = errors.New("the guest canceled the call")
	errLate     = errors.New("it took longer than a call may")
)

// call returns a call to be served, and tells whether to go on reading. It waits
// until there is room, so a guest that asks for more than is served at once is
// not read from meanwhile.
func (r *Run) call(id json.RawMessage, p *params, size int) (_ *call, more bool) {
	c := &call{run: r, id: id, begin: time.Now(), Call: Call{Run: r.id}}
	if err := r.open(); err != nil {
		return nil, r.link.answer(id, nil, err)
	}
	if r.refusals() > maxRefusals {
		return nil, false
	}
	if json.Unmarshal(p.Name, &c.Name) != nil || c.Name == "" {
		return nil, r.link.refuse(id, refuse(CodeParams, "tools/call requires a string name"))
	}
	if p.Namespace != nil && json.Unmarshal(p.Namespace, &c.Namespace) != nil {
		return nil, r.link.refuse(id, refuse(CodeParams, "namespace must be a string"))
	}
	c.progress, c.Arguments = string(p.Progress) == "true", json.RawMessage(p.Arguments)
	if c.Arguments == nil {
		c.Arguments = json.RawMessage("{}")
	}
	c.values, c.members = survey(c.Arguments)
	c.size = size + c.values*valueSize
	var refusal *Error
	if c.tool, refusal = r.catalog.find(c.Namespace, c.Name); refusal != nil {
		c.Namespace, c.Name = strings.Clone(c.Namespace[:min(len(c.Namespace), 64)]), strings.Clone(c.Name[:min(len(c.Name), 129)])
	} else {
		c.Namespace, c.Name = c.tool.info.Namespace, c.tool.info.Name
	}
	if err := r.register(c); err != nil { // from here on End may finish it
		return nil, r.link.refuse(id, err)
	}
	if refusal != nil {
		c.finish(nil, refusal)
		return nil, true
	}
	if err := r.room.take(r.ctx, c.size); err != nil {
		c.finish(nil, c.late(r.ctx))
		return nil, true
	}
	if !r.admit() {
		r.room.give(c.size)
		c.finish(nil, refuse(CodeCanceled, "%v", errRunOver))
		return nil, true
	}
	return c, true
}

// admit makes the call one that End waits for, unless End is waiting already.
func (r *Run) admit() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.serving.Add(1)
	}
	return !r.closed
}

// register makes the guest's id known, and gives the call one of ours.
func (r *Run) register(c *call) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return refuse(CodeCompleted, "run already completed")
	}
	if r.calls[string(c.id)] != nil {
		return refuse(CodeInvalidRequest, "id %s is in use", c.id)
	}
	r.calls[string(c.id)] = c
	r.issued++
	c.ID = r.id + "." + strconv.Itoa(r.issued)
	var ctx context.Context
	ctx, c.cancel = context.WithCancelCause(r.ctx)
	c.ctx = context.WithValue(ctx, callKey{}, c)
	return nil
}

type callKey struct{}

func (c *call) serve() {
	defer func() {
		c.cancel(nil)
		c.run.room.give(c.size)
		c.run.serving.Done()
	}()
	defer func() { c.finish(nil, refuse(CodeInternal, "%s ended its goroutine", c.tool.fullName())) }() // if it did
	if err := c.decide(); err != nil {
		c.finish(nil, err)
		return
	}
	c.finish(c.invoke())
}

// decide tells whether the call may be made. What is refused does not count.
func (c *call) decide() *Error {
	if err := c.validate(); err != nil {
		return err
	}
	if set := c.run.catalog.set; set.Permit != nil {
		if err := c.permit(set); err != nil {
			return err
		}
	}
	return c.run.accept(c)
}

func (c *call) permit(set *Set) (refusal *Error) {
	defer c.recovered("the permission hook", &refusal)
	err := set.Permit(c.ctx, c.Call)
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return &Error{Code: CodeDenied, Type: own.Type, Message: own.Message, Data: own.Data}
	}
	return refuse(CodeDenied, "%v", err)
}

// accept counts the call, if the run may make one more.
func (r *Run) accept(c *call) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return refuse(CodeCompleted, "run already completed")
	}
	if r.report.Accepted >= r.link.limits.Calls {
		r.report.Exceeded = true
		return refuse(CodeLimit, "tool-call limit exceeded (%d)", r.link.limits.Calls)
	}
	r.report.Accepted++
	c.accepted = true
	return nil
}

// invoke calls the tool. When the call's time is up, the guest is told so at
// once, also when the tool does not return.
func (c *call) invoke() (value json.RawMessage, refusal *Error) {
	defer c.recovered("tool "+c.tool.fullName(), &refusal)
	ctx := c.ctx
	timeout := c.tool.timeout
	if timeout == 0 {
		timeout = c.run.link.limits.CallTime
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errLate)
		defer cancel()
	}
	stop := context.AfterFunc(ctx, func() { c.finish(nil, c.late(ctx)) })
	defer stop()
	value, err := c.tool.call(ctx, c.Arguments)
	if err != nil {
		return nil, c.toolError(ctx, err)
	}
	return value, nil
}

func (c *call) toolError(ctx context.Context, err error) *Error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return c.late(ctx)
	}
	var own *Error
	if !errors.As(err, &own) {
		return &Error{Code: CodeTool, Message: err.Error()}
	}
	if own.Code == CodeParams || own.Code == CodeInternal {
		return own
	}
	return &Error{Code: CodeTool, Type: own.Type, Message: err.Error(), Data: own.Data}
}

// late says why the context of a call is done.
func (c *call) late(ctx context.Context) *Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errLate):
		return refuse(CodeTimeout, "%s: %v", qualified(c.Namespace, c.Name), errLate)
	default:
		return refuse(CodeCanceled, "%s: %v", qualified(c.Namespace, c.Name), cause)
	}
}

// recovered makes a panic in somebody's function the guest's error. The guest
// does not see what it was about, the log and the record do.
func (c *call) recovered(what string, refusal **Error) {
	p := recover()
	if p == nil {
		return
	}
	stack := string(debug.Stack())
	*refusal = refuse(CodeInternal, "%s panicked", what)
	(*refusal).panic = fmt.Sprintf("%v\n\n%s", p, stack)
	if log := c.run.catalog.set.Log; log != nil {
		log.LogAttrs(c.ctx, slog.LevelError, "panic", slog.String("run", c.Run), slog.String("call", c.ID),
			slog.String("tool", qualified(c.Namespace, c.Name)), slog.Any("panic", p), slog.String("stack", stack))
	}
}

// finish answers the call, once, and puts it on record.
func (c *call) finish(value json.RawMessage, err *Error) {
	c.once.Do(func() {
		rec := Record{Call: c.Call, Started: c.begin}
		var line []byte
		if err == nil {
			line, err = c.encode(value, &rec)
			value = nil // a guest that does not read shall not keep it twice
		}
		rec.Duration = time.Since(c.begin)
		if c.tool != nil {
			c.tool.quick.Store(rec.Duration < quick)
		}
		if err != nil {
			rec.Code, rec.Error, rec.Panic = err.Code, err.Message, err.panic
			// Its message may be as long as a tool's; it is said to be too long otherwise.
			if line = err.line(c.id); len(line) > c.run.link.limits.Frame {
				line = refuse(CodeTooLarge, "the error's text is longer than a frame").line(c.id)
			}
		}
		// Before the answer: what the guest does after it may end the run.
		c.run.record(c, rec)
		_ = c.run.link.send(line) // the reader sees that the guest is gone
		c.tell(rec)
	})
}

// encode is the line that answers with a value, which it puts on record.
func (c *call) encode(value json.RawMessage, rec *Record) ([]byte, *Error) {
	if value == nil {
		value = json.RawMessage("null")
	}
	const before, after = `{"value":`, "}}\n"
	b := bytes.NewBuffer(openResult(c.id, len(before)+len(value)+len(after)))
	b.WriteString(before)
	begin := b.Len()
	if err := json.Compact(b, value); err != nil || !utf8.Valid(value) {
		return nil, refuse(CodeInternal, "%s returned what is not JSON", c.tool.fullName())
	}
	end := b.Len()
	b.WriteString(after)
	if limit := c.run.link.limits.Frame; b.Len() > limit {
		return nil, refuse(CodeTooLarge, "the value of %s takes %d bytes, more than a frame's %d", c.tool.fullName(), len(value), limit)
	}
	rec.Value = b.Bytes()[begin:end:end]
	rec.Bytes = len(before) + len(rec.Value) + 1
	return b.Bytes(), nil
}

// Progress sends the guest word of how far a call has come, as JSON, where it
// asked for that. ctx is the one that the tool was called with. It blocks while
// the guest does not read. Its error is ErrClosed when the guest is gone.
func Progress(ctx context.Context, value any) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return fmt.Errorf("progress: the context is not a tool call's")
	}
	if err := ctx.Err(); err != nil || !c.progress {
		return err
	}
	line, err := json.Marshal(notification{Version: "2.0", Method: "progress", Params: map[string]any{"id": c.id, "value": value}})
	if err != nil {
		return err
	}
	if len(line) > c.run.link.limits.Frame {
		return refuse(CodeTooLarge, "progress: longer than a frame")
	}
	if err := c.run.link.send(append(line, '\n')); err != nil {
		return errors.Join(ErrClosed, err)
	}
	return nil
}
