package engine

import (
	"context"
	"os"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/handoff"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// channel connects a command with its tools. The zero value is none.
type channel struct {
	link *wire.Link // nil: there are no tools
	run  *wire.Run  // the present one
}

// connect makes the channel between the command and its tools. It returns the
// descriptor that becomes 3, and the environment that goes with it.
func (c *Cmd) connect() (theirs *os.File, env []string, err error) {
	ours, theirs, err := handoff.Channel()
	if err != nil {
		return nil, nil, err
	}
	c.io.theirs = append(c.io.theirs, theirs)
	l := c.sandbox.plan.limits
	c.channel.link = wire.NewLink(ours, broker.Limits{
		Frame: int(l.Frame), Calls: l.ToolCalls, AtOnce: l.ToolCallsAtOnce, CallTime: callTime(l),
		Handshake: min(c.wall(), time.Hour), // however slow the machine is
	})
	var job wire.Job
	if c.code != nil {
		job = c.code.job
	}
	if err := c.channel.serve(c.toolContext(), c.Tools, job); err != nil {
		return nil, nil, invalidBecause("", err)
	}
	return theirs, []string{"TEGMEN_FD=3", "TEGMEN_TOKEN=" + c.channel.link.Token()}, nil
}

// toolContext is done when tools are to give up.
func (c *Cmd) toolContext() context.Context {
	if c.code != nil && c.code.toolContext != nil {
		return c.code.toolContext
	}
	return c.ctx
}

// serve starts to serve a run's calls.
func (ch *channel) serve(ctx context.Context, tools *broker.Set, job wire.Job) error {
	run, err := ch.link.Start(ctx, tools, job)
	if err == nil {
		ch.run = run
	}
	return err
}

// close gives up the channel; without one it does nothing.
func (ch *channel) close() {
	if ch.link != nil {
		_ = ch.link.Close() // a socket: nothing to lose
	}
}

// hangUp ends the channel of a command that has ended, and reports what was said.
// What the command sent before its end is there; only processes that it left behind
// can hold the channel open, for as long as delay.
func (ch *channel) hangUp(delay time.Duration) report {
	if ch.link == nil {
		return report{}
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-ch.link.Done():
	case <-t.C:
	}
	r := reportOf(ch.run.End())
	ch.close()
	return r
}

// report is what was said through a channel.
type report struct {
	code     CodeResult
	exceeded bool // more calls were asked for than Limits.ToolCalls
}

func reportOf(b wire.Report) report {
	code := CodeResult{Run: b.Run, Value: b.Value, Error: b.Error, ToolCalls: b.Calls, Tools: b.Tools}
	return report{code: code, exceeded: b.Exceeded}
}

// callTime is the limit as the broker takes it: 0 is as long as the run.
func callTime(l Limits) time.Duration {
	if l.ToolTime == UnlimitedTime {
		return 0
	}
	return l.ToolTime
}

func (c *Cmd) wall() time.Duration {
	if c.Wall != 0 {
		return c.Wall
	}
	return c.sandbox.plan.limits.Wall
}
