package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"
)

// Call is a call that a guest asks for.
type Call struct {
	Run       string          // id of the run; may be ""
	ID        string          // id of the call, unique on the host
	Namespace string          // of the tool; may be ""
	Name      string          // of the tool, within its namespace
	Arguments json.RawMessage // a JSON object; nil means {}
}

// FullName returns "namespace.name", or the name of a tool without a namespace.
func (c Call) FullName() string { return fullName(c.Namespace, c.Name) }

// Record says how a call ended.
type Record struct {
	Call
	Started  time.Time       // when the request was read
	Duration time.Duration   // until it was answered
	Code     Code            // 0: it succeeded
	Error    string          // the message that the guest received; "" if it succeeded
	Panic    string          // what a tool or hook panicked with, and the stack; hidden from the guest
	Bytes    int             // of JSON in the answer; 0 if it failed
	Value    json.RawMessage // what the guest received; nil if it failed
}

// ToolUsage sums up the calls of one tool that were let through.
type ToolUsage struct {
	Calls  int           // number of calls
	Failed int           // how many of them failed
	Time   time.Duration // sum of their durations
}

var errTimedOut = errors.New("timed out")

// Call makes one call as a guest's: Lookup, Check, Invoke and Report. It serves a set
// over a transport of your own, such as MCP. It returns as soon as ctx is done or the
// tool's Timeout is reached, even if the tool is still running. c.Name may be
// "namespace.name". The error is an *Error. It is safe for concurrent use.
func (s *Set) Call(ctx context.Context, c Call) (json.RawMessage, error) {
	r := Record{Call: c, Started: time.Now()}
	err := s.checkNamed(ctx, &r.Call)
	if err == nil {
		answered := make(chan struct{})
		go s.Invoke(ctx, r.Call, 0, func(value json.RawMessage, failure error) {
			r.Value, err = value, failure
			close(answered)
		})
		<-answered
	}
	if err == nil && !(json.Valid(r.Value) && utf8.Valid(r.Value)) {
		err = Errorf(CodeInternal, "%s returned invalid JSON", r.FullName())
	}
	r.Duration, r.Bytes = time.Since(r.Started), len(r.Value)
	if own := (*Error)(nil); errors.As(err, &own) {
		r.Code, r.Error, r.Panic, r.Value, r.Bytes = own.Code, own.Message, own.Panic, nil, 0
	}
	s.Report(ctx, r)
	return r.Value, err
}

// checkNamed finds the tool that c means, puts its exact name into c, and checks the
// call.
func (s *Set) checkNamed(ctx context.Context, c *Call) error {
	t, err := s.find(c.Namespace, c.Name)
	if err != nil {
		return err
	}
	if c.Namespace, c.Name = t.namespace, t.name; c.Arguments == nil {
		c.Arguments = json.RawMessage("{}")
	}
	return s.Check(ctx, *c)
}

// Check decides whether a call may be made: its arguments must fit the schema, and
// Permit must agree. The error is an *Error. Call does this itself; Check and Invoke
// are for transports that count calls or answer before a tool returns.
func (s *Set) Check(ctx context.Context, c Call) error {
	t, err := s.find(c.Namespace, c.Name)
	if err != nil {
		return err
	}
	if err := t.validate(c.Arguments); err != nil {
		return err
	}
	if s.Permit == nil {
		return nil
	}
	return s.permit(ctx, c)
}

func (s *Set) permit(ctx context.Context, c Call) (refusal error) {
	defer s.recovered(ctx, c, "permission hook", &refusal)
	err := s.Permit(ctx, c)
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return &Error{Code: CodeDenied, Type: own.Type, Message: own.Message, Data: own.Data}
	}
	return Errorf(CodeDenied, "%v", err)
}

// Invoke calls a tool without asking whether it may be called; see Check. It passes
// the outcome to answer exactly once: when the tool returns, or on another goroutine
// as soon as the call times out or ctx is done. Invoke itself returns when the tool
// has returned, and ends its goroutine if the tool does. timeout bounds tools without
// a Timeout; 0 means no bound. The error passed to answer is nil or an *Error; a nil
// value means null, and other values are not verified to be JSON.
func (s *Set) Invoke(ctx context.Context, c Call, timeout time.Duration, answer func(json.RawMessage, error)) {
	t, err := s.find(c.Namespace, c.Name)
	if err != nil {
		answer(nil, err)
		return
	}
	var once sync.Once
	first := func(value json.RawMessage, err error) {
		once.Do(func() {
			v := value
			value = nil // long values are not kept while answer blocks
			answer(v, err)
		})
	}
	defer func() { first(nil, Errorf(CodeInternal, "tool %s called runtime.Goexit", c.FullName())) }()
	if t.Timeout > 0 {
		timeout = t.Timeout
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimedOut)
		defer cancel()
	}
	stop := context.AfterFunc(ctx, func() { first(nil, interrupted(ctx, c)) })
	defer stop()
	first(s.invoke(ctx, t, c))
}

func (s *Set) invoke(ctx context.Context, t *tool, c Call) (value json.RawMessage, refusal error) {
	defer s.recovered(ctx, c, "tool "+c.FullName(), &refusal)
	value, err := t.Tool.Call(withSink(ctx), c.Arguments)
	if err != nil {
		return nil, toolError(ctx, c, err)
	}
	if value == nil {
		value = json.RawMessage("null")
	}
	return value, nil
}

func toolError(ctx context.Context, c Call, err error) *Error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return interrupted(ctx, c)
	}
	var own *Error
	switch {
	case !errors.As(err, &own):
		return &Error{Code: CodeTool, Message: err.Error()}
	case own.Code == CodeParams || own.Code == CodeInternal:
		return own
	}
	return &Error{Code: CodeTool, Type: own.Type, Message: err.Error(), Data: own.Data}
}

// interrupted returns the error for a call whose context is done.
func interrupted(ctx context.Context, c Call) *Error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errTimedOut) {
		return Errorf(CodeTimeout, "%s: %v", c.FullName(), errTimedOut)
	}
	return Errorf(CodeCanceled, "%s: %v", c.FullName(), cause)
}

// recovered turns a panic in a tool or hook into an error reply. The guest does not
// see the panic's value; the log and the record do.
func (s *Set) recovered(ctx context.Context, c Call, what string, refusal *error) {
	p := recover()
	if p == nil {
		return
	}
	stack := string(debug.Stack())
	e := Errorf(CodeInternal, "%s panicked", what)
	e.Panic = fmt.Sprintf("%v\n\n%s", p, stack)
	*refusal = e
	if s.Log != nil {
		s.Log.LogAttrs(ctx, slog.LevelError, "panic", slog.String("run", c.Run), slog.String("call", c.ID),
			slog.String("tool", c.FullName()), slog.Any("panic", p), slog.String("stack", stack))
	}
}

// Report writes the log line for a call that has ended and passes the record to
// Audit. Call does this itself.
func (s *Set) Report(ctx context.Context, r Record) {
	if s.Log != nil {
		attrs := []slog.Attr{
			slog.String("run", r.Run), slog.String("call", r.ID), slog.String("tool", r.FullName()),
			slog.Duration("duration", r.Duration), slog.Int("bytes", r.Bytes),
		}
		if r.Code != 0 {
			text := fmt.Sprintf("%.4096s", r.Error) // a guest decides how long it is
			attrs = append(attrs, slog.String("refused", r.Code.String()), slog.String("error", text))
		}
		s.Log.LogAttrs(ctx, slog.LevelInfo, "tool call", attrs...)
	}
	if s.Audit != nil {
		defer s.recovered(ctx, r.Call, "audit hook", new(error))
		s.Audit(r)
	}
}
