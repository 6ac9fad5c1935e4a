//go:build darwin || (linux && (amd64 || arm64))

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// This file is the way to start sandboxes that any Unix has: commands are child
// processes in sessions of their own, confined by sandbox-exec(1) where that is,
// and a sandbox is what has descended from them and a private directory.

// posixMachine is what sandboxes of an Engine share: next to nothing.
type posixMachine struct {
	host  Host
	null  *os.File
	swept sync.Once
}

func openPosix(h Host) (machine, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &posixMachine{host: h, null: null}, nil
}

func (m *posixMachine) close() error { return m.null.Close() }

func (m *posixMachine) start(p *Plan) (box, error) {
	begin := time.Now()
	if !p.plain() {
		return nil, invalid("a plan for %s, on %s", p.system, m.host.OS)
	}
	m.swept.Do(func() { sweepBare(m.host, p.ids) })
	dir, lock, err := makePrivateDir(m.host, p.ids)
	if err != nil {
		return nil, err
	}
	b := &posixBox{m: m, made: p.in(dir), dir: dir, lock: lock, over: make(chan struct{})}
	if b.watcher, err = startWatcher(dir, m.credential(p)); err != nil {
		return nil, errors.Join(err, b.remove(dir), lock.Close())
	}
	if b.forks, err = watchForks(func() { _, _ = b.scan() }); err != nil { // what cannot be looked at, look ends
		return nil, errors.Join(err, b.remove(dir), lock.Close(), b.watcher.close())
	}
	b.took = Timing{Total: time.Since(begin)}
	return b, nil
}

// credential is who guests and what deals with them are: never root of the host.
// nil is this process's user.
func (m *posixMachine) credential(p *Plan) *syscall.Credential {
	if !m.host.Become {
		return nil
	}
	return &syscall.Credential{Uid: uint32(p.ids.hostUID), Gid: uint32(p.ids.hostGID)}
}

// posixBox is a sandbox.
type posixBox struct {
	m       *posixMachine
	made    *Plan
	took    Timing
	dir     string
	lock    *os.File // the directory, locked as long as it is in use
	watcher *watcher
	forks   *forkWatch

	mu      sync.Mutex
	ended   bool // no command starts any more
	running sync.WaitGroup
	procs   []*posixProcess // that have not been reaped
	trees   []*tree         // of commands, also of those that have ended and left something behind
	used    reading
	tooMany bool // when last looked at

	ending sync.Once
	over   chan struct{} // closed when no process is left
	left   error         // some are; read after over
}

func (b *posixBox) plan() *Plan       { return b.made }
func (b *posixBox) timing() Timing    { return b.took }
func (b *posixBox) overlay() *layers  { return nil }
func (b *posixBox) dying() bool       { return false }
func (b *posixBox) enter() error      { return nil }
func (b *posixBox) leave()            {}
func (b *posixBox) full() []fullLimit { return nil }
func (b *posixBox) hostOOM() bool     { return false }

// guard has the trees looked at, whether there is a limit to processes or not:
// only who has been seen can be killed later. Forks are looked after at once
// where the system tells of them, too.
func (b *posixBox) guard(s *Sandbox) { go s.watchdog(b.made.watch) }

// What leaves its parent and its group in less time than this can be missed.
const lookEvery = 40 * time.Millisecond

func (b *posixBox) firstLook(watch) time.Duration { return lookEvery / 4 }

func (b *posixBox) look(w watch) (sight, time.Duration) {
	n, err := b.scan()
	if err != nil {
		return sight{pids: Unlimited}, lookEvery // what cannot be looked at is ended
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	many := n > w.pids
	if many && !b.tooMany {
		b.used.forkFail++
	}
	b.tooMany = many
	return sight{pids: n, idle: n == 0}, lookEvery
}

// scan looks at all processes, and returns how many are the sandbox's.
func (b *posixBox) scan() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.scanLocked()
}

func (b *posixBox) scanLocked() (int, error) {
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
		t.reapStrays()
		n += t.living()
		if !t.gone() {
			kept = append(kept, t)
			maps.Copy(groups, t.led)
		}
	}
	clear(b.trees[len(kept):])
	b.trees = kept
	b.watcher.tell(groups)
	b.used.by, b.used.pids = byWatchdog, max(b.used.pids, n)
	return n, nil
}

func (b *posixBox) measure() reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// kill ends everything, until nothing is left.
func (b *posixBox) kill() {
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
func (b *posixBox) until(trees func() []*tree) error {
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
func (b *posixBox) killAll(trees func() []*tree) (left int, some bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err = b.scanLocked()
	for _, t := range trees() {
		left += t.living()
		some = t.kill() || some
	}
	return left, some, err
}

func (b *posixBox) wait() error {
	<-b.over
	if b.left != nil {
		return errors.Join(b.left, b.forks.close(), b.lock.Close(), b.watcher.close()) // its directory is in use
	}
	b.running.Wait()
	// Unlocked when it is gone: others remove what they find unlocked.
	return errors.Join(b.forks.close(), b.remove(b.dir), b.lock.Close(), b.watcher.close())
}

// remove is for directories that are the guest's.
func (b *posixBox) remove(dir string) error { return removeOwn(b.m.host, b.made.ids, dir) }

func (b *posixBox) terminal(w WindowSize) (master, slave *os.File, err error) {
	return openTerminal(w)
}

func (m *posixMachine) diagnose() []Finding {
	h := m.host
	out := []Finding{
		{What: "system", OK: true, Detail: h.OS + " " + h.Kernel + " " + h.Arch},
		{What: "account", OK: h.UID != 0 || h.Contained, Detail: fmt.Sprintf("uid %d: guests run as this user", h.UID), Remedy: "be an ordinary user"},
	}
	if h.OS == "darwin" {
		f := Finding{What: "sandbox-exec", OK: true, Detail: h.SandboxExec}
		if h.TrySeatbelt != nil {
			if err := h.TrySeatbelt(); err != nil {
				f.OK, f.Detail, f.Remedy = false, err.Error(), "run outside of other sandboxes; for development, --allow-no-isolation"
			}
		}
		out = append(out, f)
	}
	return append(out, Finding{What: "limits", OK: true, Detail: "limited are processes by a watchdog, and memory, CPUs and I/O by nothing"})
}

// trySandboxExec tells why a program cannot be run by sandbox-exec.
func trySandboxExec(program string) error {
	if program == "" {
		return &UnsupportedError{Feature: "sandbox-exec(1)"}
	}
	cmd := exec.Command(program, "-p", "(version 1)(allow default)", "/bin/sh", "-c", ":")
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	if err = seatbeltError(string(bytes.TrimSpace(out)), err); err != nil && !errors.Is(err, ErrUnsupported) && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errShort, err)
	}
	return err
}

// seatbeltError explains what sandbox-exec, or the shell it starts, has said.
func seatbeltError(said string, err error) error {
	if err == nil {
		return nil
	}
	if strings.Contains(said, "sandbox_apply: Operation not permitted") {
		return &UnsupportedError{Feature: "sandbox-exec in a process that is in a sandbox itself", Err: syscall.EPERM,
			Remedy: "Seatbelt does not nest: start it outside of the other sandbox, or leave the isolation to that (allow no isolation)"}
	}
	if said == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}
