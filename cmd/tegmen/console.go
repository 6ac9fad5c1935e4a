package main

import (
	"os"
	"sync"

	"github.com/tegmen-dev/tegmen/engine"
)

// console is the user's terminal, in raw mode while a guest has it. Its methods do nothing
// if it is nil, and may be called at any time.
type console struct {
	f       *os.File
	mu      sync.Mutex
	restore func() // nil: it is not in raw mode
	ended   bool
}

// enter puts the terminal into raw mode.
func (c *console) enter() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	restore, err := rawMode(c.f)
	if c.restore == nil && err == nil { // otherwise the mode that it had before counts
		c.restore = restore
	}
	return err
}

// leave restores the terminal until the next enter.
func (c *console) leave() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.restore != nil {
		c.restore()
		c.restore = nil
	}
}

// end restores the terminal for good.
func (c *console) end() {
	c.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// resume takes the terminal again after this process was stopped: a shell has had it.
func (o *options) resume(cmd *engine.Cmd) {
	_ = o.console.enter() // without it the guest still gets lines
	o.resize(cmd)
}

func (o *options) resize(cmd *engine.Cmd) {
	if size, err := terminalSize(os.Stdin); err == nil && cmd.TTY != nil {
		_ = cmd.Resize(size) // it may have ended
	}
}
