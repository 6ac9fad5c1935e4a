package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/wire"
)

// connect makes a channel between the command and its tools. It returns the
// files that become 3, 4, ….
func (c *Cmd) connect(env *[]string) ([]*os.File, error) {
	if c.Tools == nil {
		return nil, nil
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	files := []*os.File{theirs}
	c.io.theirs = append(c.io.theirs, theirs)
	l := c.sandbox.plan.limits
	c.link = wire.NewLink(ours, broker.Limits{
		Frame: int(l.Frame), Calls: l.ToolCalls, AtOnce: l.ToolCallsAtOnce, CallTime: callTime(l),
		Handshake: min(orDefault(c.Wall, l.Wall), time.Hour), // however slow the machine is
	})
	ctx := c.ctx
	if c.toolCtx != nil {
		ctx = c.toolCtx
	}
	if c.served, err = c.link.Start(ctx, c.Tools, c.job); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	texts, err := c.passTexts()
	if err != nil {
		return nil, err
	}
	files = append(files, texts...)
	*env = mergeEnv(*env, []string{"TEGMEN_FD=3", "TEGMEN_TOKEN=" + c.link.Token()})
	return files, nil
}

// passTexts writes them to where the guest reads them.
func (c *Cmd) passTexts() (files []*os.File, err error) {
	if c.textDir != "" {
		return nil, c.sandbox.writeTexts(c.textDir, c.texts)
	}
	for _, text := range c.texts {
		f, err := readOnlyText(text)
		if err != nil {
			return nil, err
		}
		files, c.io.theirs = append(files, f), append(c.io.theirs, f)
	}
	return files, nil
}

// textDir names a directory for the texts of one command, where descriptors have
// no names of their own.
func (s *Sandbox) textDir() string {
	if s.plan.private == "" || !s.plan.plain() {
		return ""
	}
	return filepath.Join(s.plan.private, fmt.Sprintf("run-%d", s.runs.Add(1)))
}

// writeTexts fills that directory. It is the guest's, who makes a lock in it.
func (s *Sandbox) writeTexts(dir string, texts []string) error {
	return asGuest(s.engine.host, s.plan.ids, func() error {
		err := os.Mkdir(dir, 0o700)
		for i, text := range texts {
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, strconv.Itoa(4+i)), []byte(text), 0o400)
			}
		}
		return err
	})
}

// hangUp ends the channel of a command that has ended, and reports what was
// said. It tells whether the command asked for more calls than it may make.
func (c *Cmd) hangUp(r *Result) (exceeded bool) {
	if c.link == nil {
		return false
	}
	// What the command sent before its end is there; only processes that it left
	// behind can hold the channel open.
	t := time.NewTimer(c.waitDelay())
	defer t.Stop()
	select {
	case <-c.link.Done():
	case <-t.C:
	}
	report := c.served.End()
	_ = c.link.Close() // a socket: nothing to lose
	r.fill(report)
	return report.Exceeded
}

func (r *Result) fill(b wire.Report) {
	r.Run, r.Value, r.Error, r.ToolCalls, r.Tools = b.Run, b.Value, b.Error, b.Calls, b.Tools
}

// abandon gives up on a command that did not start.
func (c *Cmd) abandon() {
	c.io.abort()
	if c.link != nil {
		_ = c.link.Close()
	}
}

func callTime(l Limits) time.Duration {
	if l.ToolTime == Unlimited {
		return 0 // as long as its run
	}
	return l.ToolTime
}
