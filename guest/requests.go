package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// pending is a request in flight.
type pending struct {
	id       uint64
	progress func(json.RawMessage)
	reply    frame
	done     bool
	asleep   bool          // waiting for wake
	wake     chan struct{} // holds one: the reply has arrived, or nobody reads
}

// request sends a request and waits for its reply. A caller that finds nobody reading
// reads for all of them, so a lone call costs no switch between goroutines.
func (c *Client) request(
	ctx context.Context, method string, params []byte, progress func(json.RawMessage),
) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &pending{progress: progress, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, errClosed()
	}
	c.last++
	p.id = c.last
	c.waiting[p.id] = p
	c.mu.Unlock()

	line := make([]byte, 0, len(params)+64)
	line = strconv.AppendUint(append(line, `{"jsonrpc":"2.0","id":`...), p.id, 10)
	line = append(append(append(line, `,"method":"`...), method...), `","params":`...)
	line = append(append(line, params...), "}\n"...)
	if err := c.send(line); err != nil {
		c.forget(p)
		return nil, err
	}
	if err := c.wait(ctx, p); err != nil {
		c.forget(p)
		if ctx.Err() != nil {
			cancel := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"cancel","params":{"id":%d}}`+"\n", p.id)
			_ = c.send(cancel) // best effort: the caller has its error
		}
		return nil, err
	}
	return p.reply.result, p.reply.err
}

func (c *Client) send(line []byte) error {
	if len(line) > c.in.Limit {
		text := fmt.Sprintf("message of %d bytes exceeds the limit of %d", len(line), c.in.Limit)
		return &ToolError{Code: -32007, Type: "too_large", Message: text}
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if _, err := c.conn.Write(line); err != nil {
		return errClosed()
	}
	return nil
}

// forget removes a request. If it was to read next, another request takes over.
func (c *Client) forget(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, p.id)
	if c.reader == nil {
		c.next()
	}
}

// next wakes a waiting request to read. It skips requests that are still being sent:
// the host may not read them before it could write its answers. c.mu is held.
func (c *Client) next() {
	for _, p := range c.waiting {
		if p.asleep {
			p.signal()
			return
		}
	}
}

func (p *pending) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // already signaled
	}
}

func (c *Client) wait(ctx context.Context, p *pending) error {
	for {
		c.mu.Lock()
		switch {
		case p.done:
			c.mu.Unlock()
			return nil
		case c.err != nil:
			c.mu.Unlock()
			return errClosed()
		case c.reader == nil:
			c.reader, p.asleep = p, false
			c.mu.Unlock()
			if err := c.read(ctx, p); err != nil {
				return err
			}
			continue
		}
		p.asleep = true
		c.mu.Unlock()
		select {
		case <-p.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read reads for all requests until p has its reply or ctx is done.
func (c *Client) read(ctx context.Context, p *pending) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.reader == p {
				c.expired = true
				_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // an error means closed, which ends the read as well
			}
		})
		defer stop()
	}
	var err error
	for err == nil && !p.done { // only the reader sets done
		var line []byte
		if line, err = c.in.Next(); err == nil {
			c.deliver(line)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reader = nil
	if c.expired {
		c.expired = false
		_ = c.conn.SetReadDeadline(time.Time{}) // an error means closed, which the next read reports
	}
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.next()
		return ctx.Err()
	default:
		c.err = err
		for _, w := range c.waiting {
			w.signal()
		}
		return errClosed()
	}
	c.next()
	return nil
}

// deliver passes a line to its request.
func (c *Client) deliver(line []byte) {
	f, ok := parse(line)
	if !ok {
		return
	}
	c.mu.Lock()
	p := c.waiting[f.id]
	if p == nil {
		c.mu.Unlock()
		return // canceled
	}
	if f.progress {
		c.mu.Unlock()
		if p.progress != nil {
			p.progress(f.result)
		}
		return
	}
	delete(c.waiting, f.id)
	p.reply, p.done = f, true
	if p != c.reader {
		p.signal()
	}
	c.mu.Unlock()
}

func errClosed() error {
	return &ToolError{Code: -32006, Type: "canceled", Message: "the host closed the connection"}
}
