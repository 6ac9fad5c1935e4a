//go:build darwin || (linux && (amd64 || arm64))

package procbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/handoff"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/privatedir"
)

// Machine starts sandboxes that are process groups. It holds next to nothing.
type Machine struct {
	host    box.Host
	null    *os.File
	swept   sync.Once
	signals chan os.Signal // nobody receives; see defaultSignals
}

// Open prepares a machine. The caller closes it.
func Open(h box.Host) (*Machine, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &Machine{host: h, null: null, signals: defaultSignals()}, nil
}

// defaultSignals gives commands the default action of the signals that this process
// ignores, as nohup(1) has it do: execve keeps what is ignored, but resets what is
// handled. They are still without effect here, since nobody receives them.
func defaultSignals() chan os.Signal {
	c := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} { // Go handles all others itself
		if signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c
}

// Close releases what the machine holds. The sandboxes have ended.
func (m *Machine) Close() error {
	signal.Stop(m.signals)
	return m.null.Close()
}

// Start makes the sandbox's private directory and its watcher.
func (m *Machine) Start(c *box.Config) (*box.Started, error) {
	begin := time.Now()
	owner := privatedir.Owner{IDs: c.IDs, Become: m.host.Become}
	m.swept.Do(func() { privatedir.Sweep(owner) })
	dir, err := privatedir.Make(owner)
	if err != nil {
		return nil, err
	}
	b := &procBox{
		m: m, config: withPrivate(c, dir.Path), owner: owner, dir: dir,
		over: make(chan struct{}), gone: make(chan struct{}),
	}
	if b.watcher, err = startWatcher(dir.Path, m.credential(c)); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if b.forks, err = watchForks(func() { _, _ = b.scan() }); err != nil { // what cannot be looked at, look ends
		return nil, errors.Join(err, dir.Close(), b.watcher.close())
	}
	return &box.Started{Box: b, Timing: box.Timing{Total: time.Since(begin)}, Private: dir.Path, TextFiles: true}, nil
}

// credential is who guests and what deals with them are: never root of the host.
// nil is this process's user.
func (m *Machine) credential(c *box.Config) *syscall.Credential {
	if !m.host.Become {
		return nil
	}
	return &syscall.Credential{Uid: uint32(c.IDs.HostUID), Gid: uint32(c.IDs.HostGID)}
}

// procBox is a sandbox: what has descended from its commands, and a private
// directory.
type procBox struct {
	m        *Machine
	config   *box.Config
	owner    privatedir.Owner
	dir      *privatedir.Dir
	watcher  *watcher
	forks    *forkWatch
	activity box.Activity

	mu      sync.Mutex
	ended   bool           // no command starts any more
	running sync.WaitGroup // commands; added to under mu, unless ended
	procs   []*process     // that have not been reaped
	trees   []*tree        // of commands, even of those that have ended and left something behind
	used    box.Usage
	tooMany bool // when last looked at

	ending sync.Once
	over   chan struct{} // closed when no process is left
	left   error         // some are; read after over
	gone   chan struct{} // closed when nothing is left of the sandbox
}

// Watch looks at the trees, whether there is a limit to processes or not: only
// what has been seen can be killed later. Where the system tells of forks, those
// are looked at right away.
func (b *procBox) Watch() <-chan box.Exceeded {
	out := make(chan box.Exceeded)
	go func() {
		defer close(out)
		first := func() time.Duration { return lookEvery / 4 }
		box.Watchdog(out, b.gone, &b.activity, b.config.Watch, first, b.look)
	}()
	return out
}

// What leaves its parent and its group in less time than this can be missed.
const lookEvery = 40 * time.Millisecond

func (b *procBox) look() (box.Look, time.Duration) {
	n, err := b.scan()
	if err != nil {
		return box.Look{Pids: box.Unlimited}, lookEvery // what cannot be looked at is ended
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	many := n > b.config.Watch.Pids
	if many && !b.tooMany {
		b.used.ForkFail++
	}
	b.tooMany = many
	return box.Look{Pids: n, Idle: n == 0}, lookEvery
}

// scan looks at all processes, and returns how many are the sandbox's.
func (b *procBox) scan() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.scanLocked()
}

func (b *procBox) scanLocked() (int, error) {
	all, err := processTable()
	if err != nil {
		return 0, err
	}
	n, kept := 0, b.trees[:0]
	groups := make(map[int]bool)
	for _, t := range b.trees {
		for _, pid := range t.look(all) {
			b.forks.add(pid)
		}
		t.reapOrphans()
		n += t.living()
		if !t.gone() {
			kept = append(kept, t)
			maps.Copy(groups, t.led)
		}
	}
	clear(b.trees[len(kept):])
	b.trees = kept
	b.watcher.tell(groups)
	b.used.By, b.used.Pids = box.ByWatchdog, max(b.used.Pids, n)
	return n, nil
}

// Usage returns what the scans have seen.
func (b *procBox) Usage() box.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Kill ends everything, until nothing is left.
func (b *procBox) Kill() {
	b.mu.Lock()
	b.ended = true
	for _, p := range b.procs {
		p.unblock()
	}
	b.mu.Unlock()
	b.ending.Do(func() {
		go func() {
			b.left = b.until(func() []*tree { return b.trees })
			close(b.over)
		}()
	})
}

// killPatience is how long there is nothing but what cannot be killed, or looked
// at, until a kill gives up.
const killPatience = 2 * time.Second

// until kills trees until no process is left in them. A process may have become
// another user's: a set-user-ID program.
func (b *procBox) until(trees func() []*tree) error {
	for pause, giveUp := time.Millisecond, time.Now().Add(killPatience); ; pause = min(2*pause, 20*time.Millisecond) {
		left, some, err := b.killAll(trees)
		switch {
		case left == 0 && err == nil:
			return nil
		case some:
			giveUp = time.Now().Add(killPatience)
		case time.Now().After(giveUp):
			return errors.Join(err, fmt.Errorf("%d processes cannot be killed: %w", left, syscall.EBUSY))
		}
		time.Sleep(pause) // there is nothing to wait on: they are no children
	}
}

// killAll kills what there is, and tells how many there were and whether some of
// them can be killed.
func (b *procBox) killAll(trees func() []*tree) (left int, some bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err = b.scanLocked()
	for _, t := range trees() {
		left += t.living()
		some = t.kill() || some
	}
	return left, some, err
}

// Wait returns when nothing is left.
func (b *procBox) Wait() error {
	defer close(b.gone)
	<-b.over
	if b.left != nil { // the directory is in use
		return errors.Join(b.left, b.forks.close(), b.dir.Abandon(), b.watcher.close())
	}
	b.running.Wait()
	return errors.Join(b.forks.close(), b.dir.Close(), b.watcher.close())
}

// Held finds nothing: a profile keeps protected paths from being made.
func (b *procBox) Held() ([]box.Held, error) { return nil, nil }

// Terminal opens a pseudo-terminal of the host's.
func (b *procBox) Terminal(w box.WindowSize) (master, slave *os.File, err error) {
	return handoff.OpenTerminal(w)
}

// Diagnose finds out what this system and account allow.
func (m *Machine) Diagnose() []box.Finding {
	h := m.host
	out := []box.Finding{
		{What: "system", OK: true, Detail: h.OS + " " + h.Kernel + " " + h.Arch},
		{
			What: "account", OK: h.UID != 0 || h.Contained,
			Detail: fmt.Sprintf("uid %d: guests run as this user", h.UID), Remedy: "be an ordinary user",
		},
	}
	if h.OS == "darwin" {
		f := box.Finding{What: "sandbox-exec", OK: true, Detail: h.SandboxExec}
		if h.TrySeatbelt != nil {
			if err := h.TrySeatbelt(); err != nil {
				f.OK, f.Detail = false, err.Error()
				f.Remedy = "run outside of other sandboxes; for development, --allow-no-isolation"
			}
		}
		out = append(out, f)
	}
	return append(out, box.Finding{What: "limits", OK: true,
		Detail: "a watchdog limits processes; memory, CPUs and I/O are not limited"})
}

// seatbeltError explains what sandbox-exec, or the shell it starts, has printed.
func seatbeltError(said string, err error) error {
	if err == nil {
		return nil
	}
	if strings.Contains(said, "sandbox_apply: Operation not permitted") {
		return &launch.UnsupportedError{Feature: "sandbox-exec in a process that is in a sandbox itself", Err: syscall.EPERM,
			Remedy: "Seatbelt does not nest: start it outside of the other sandbox, " +
				"or leave the isolation to that (allow no isolation)"}
	}
	if said == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}
