package broker

import (
	"context"
	"encoding/json"
	"errors"
)

type sinkKey struct{}

// WithProgress returns a context for a call whose progress goes to send, which gets
// JSON and may be called concurrently. A nil send discards it. It is for transports
// and for tests of tools.
func WithProgress(ctx context.Context, send func(value json.RawMessage) error) context.Context {
	return context.WithValue(ctx, sinkKey{}, send)
}

// withSink lets a tool call Progress on a transport that has none.
func withSink(ctx context.Context) context.Context {
	if ctx.Value(sinkKey{}) != nil {
		return ctx
	}
	return WithProgress(ctx, nil)
}

// Progress reports how far a call has come, as JSON, to a guest that asked for it;
// otherwise it does nothing. ctx is the context that the tool was called with, or one
// derived from it. It blocks while the guest does not read. The error is ctx.Err() once
// the call has ended, and ErrClosed if the guest is gone.
func Progress(ctx context.Context, value any) error {
	send, ok := ctx.Value(sinkKey{}).(func(json.RawMessage) error)
	if !ok {
		return errors.New("progress: the context does not belong to a tool call")
	}
	if err := ctx.Err(); err != nil || send == nil {
		return err
	}
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return send(b)
}
