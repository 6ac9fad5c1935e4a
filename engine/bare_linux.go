//go:build linux && (amd64 || arm64)

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/sample"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// This file is the rung of the ladder below namespaces: where those are refused
// and the Spec accepts it, commands are confined by Landlock and seccomp alone.

// decideBare turns the mount table into rights to the host's own files.
func (p *Plan) decideBare(h Host) {
	grants := []ns.Grant{{Path: "/proc", Access: ns.Read}}
	for _, name := range bareEtc {
		if src, err := h.Lookup(name); err == nil {
			grants = append(grants, ns.GrantSource(src, ns.Read))
		}
	}
	for _, n := range p.table {
		switch {
		case n.Kind == rootfs.Bind && n.ReadOnly:
			grants = append(grants, ns.GrantSource(n.Source, ns.Read))
		case n.Kind == rootfs.Bind:
			grants = append(grants, ns.GrantSource(n.Source, ns.Read|ns.Change|ns.Make))
		case n.Kind == rootfs.Device:
			grants = append(grants, ns.GrantSource(n.Source, ns.Read|ns.Change))
		}
	}
	grants = append(grants, ns.Grant{Path: privateDir, Access: ns.Read | ns.Change | ns.Make})
	p.landlock.rules = &ns.Ruleset{ABI: h.Landlock, Rules: grants, Scope: ns.ScopeAbstract | ns.ScopeSignal}
	p.landlock.note = fmt.Sprintf("version %d: instead of namespaces", h.Landlock)
}

// bareEtc is what else of /etc programs read: accounts and names, which a view of
// the sandbox's own would have generated, and what Debian's Python starts with.
var bareEtc = []string{
	"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf",
	"/etc/python3.8", "/etc/python3.9", "/etc/python3.10", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13", "/etc/python3.14",
}

// bareABI is the first version of Landlock that will do.
const bareABI = ns.FirstScope

// tryNamespaces makes some, and a mount in them, as a sandbox would; nothing is
// left of them.
func tryNamespaces() error {
	s, err := launch.NewSpawner(nil)
	if err != nil {
		return err
	}
	defer s.Close()
	p := launch.NewProgram(1)
	p.Do("make private", "/", unix.SYS_MOUNT, launch.Int(0), p.Str("/"), launch.Int(0), launch.Int(unix.MS_REC|unix.MS_PRIVATE), launch.Int(0))
	err = s.RunOnThread(p, setup.Namespaces)
	if errors.Is(err, unix.ENOSPC) && sysctl("user/max_user_namespaces") != "0" { // there are that many
		err = fmt.Errorf("%w: %w", errShort, err)
	}
	return err
}

// bareBox is a sandbox without namespaces: the directory that is its own, and the
// reapers of its commands.
type bareBox struct {
	remove func() error // its directory
	lock   *os.File     // the directory, locked as long as it is in use
	image  *os.File     // launch.Reaper

	mu      sync.Mutex
	ended   bool
	reapers map[*os.File]struct{} // pidfds
	running sync.WaitGroup
	over    chan struct{} // closed by kill
}

// startBare makes the directory. There is no process yet.
func (m *linuxMachine) startBare(p *Plan) (*linuxBox, error) {
	s, err := m.spawner(p.ids)
	if err != nil {
		return nil, err
	}
	if _, done := m.swept.LoadOrStore(p.ids.hostUID, true); !done {
		sweepBare(m.host, p.ids)
	}
	dir, lock, err := makePrivateDir(m.host, p.ids)
	if err != nil {
		return nil, err
	}
	image, err := launch.Reaper()
	if err != nil {
		return nil, errors.Join(err, lock.Close(), removeOwn(m.host, p.ids, dir))
	}
	return &linuxBox{m: m, spawner: s, made: p.in(dir), bare: &bareBox{remove: func() error { return removeOwn(m.host, p.ids, dir) }, lock: lock, image: image, reapers: make(map[*os.File]struct{}), over: make(chan struct{})}}, nil
}

// kill ends every command's tree: each reaper kills its own.
func (b *bareBox) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		close(b.over)
	}
	for fd := range b.reapers {
		_ = sendSignal(fd, unix.SIGTERM) // it has ended
	}
}

// wait returns when the sandbox has been told to end and nothing is left of it.
func (b *bareBox) wait() error {
	<-b.over
	b.running.Wait()
	// Unlocked when it is gone: others remove what they find unlocked.
	return errors.Join(b.remove(), b.lock.Close(), b.image.Close())
}

// exec starts a command with a reaper above it.
func (b *bareBox) exec(parent *linuxBox, c setup.Command, p *linuxProcess) error {
	b.mu.Lock()
	if b.ended {
		b.mu.Unlock()
		return ErrClosed
	}
	b.running.Add(1)
	b.mu.Unlock()
	reaped := func(err error) error {
		b.running.Done()
		return err
	}
	var files [4]*os.File // control read, control write, status read, status write
	closeAll := func() (err error) {
		for _, f := range files {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		return err
	}
	var err error
	for i := 0; i < 4 && err == nil; i += 2 {
		files[i], files[i+1], err = os.Pipe()
	}
	if err != nil {
		return reaped(errors.Join(err, closeAll()))
	}
	bare := setup.LandlockOnly{ReaperFD: int(b.image.Fd()), ControlFD: int(files[0].Fd()), StatusFD: int(files[3].Fd())}
	p.entry = bare.Enter(c)
	reaper, err := parent.spawner.Start(p.entry.Program, 0)
	runtime.KeepAlive(files)
	p.pid = p.entry.PID.Int()
	if err != nil {
		if p.pid > 0 {
			_ = unix.Kill(p.pid, unix.SIGKILL) // another's child now, if it has not ended
		}
		return reaped(errors.Join(err, closeAll()))
	}
	fd, err := pidfdOpen(reaper)
	if err == nil {
		// The reaper waits for this before it reaps the command.
		p.pidfd, err = pidfdOpen(p.pid)
	}
	if err == nil {
		_, err = files[1].Write(binary.NativeEndian.AppendUint64(nil, uint64(p.pid)))
	}
	if err != nil {
		err = errors.Join(err, closeAll()) // so the reaper ends its tree
		for _, f := range []*os.File{fd, p.pidfd} {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		return reaped(errors.Join(err, launch.Reap(reaper)))
	}
	p.status = files[2]
	err = errors.Join(files[0].Close(), files[1].Close(), files[3].Close())
	p.reaper = fd
	b.watch(parent, fd, reaper)
	return err
}

// watch reaps a reaper, which ends with the last process of its tree.
func (b *bareBox) watch(parent *linuxBox, fd *os.File, pid int) {
	s, err := sample.OpenTree(pid)
	parent.sampled.add(s, err)
	b.mu.Lock()
	b.reapers[fd] = struct{}{}
	if b.ended {
		_ = sendSignal(fd, unix.SIGTERM) // kill has come in between
	}
	b.mu.Unlock()
	go func() {
		defer b.running.Done()
		_, _, _ = waitFor(fd, pid, func() {}) // it has no tracer, and nothing to say
		if s != nil {
			parent.sampled.remove(s)
		}
		b.mu.Lock()
		delete(b.reapers, fd)
		b.mu.Unlock()
		_ = fd.Close() // done with
	}()
}

// waitBare reads what the reaper reports of the command's end.
func (p *linuxProcess) waitBare() (status syscall.WaitStatus, used rusage, err error) {
	var usage syscall.Rusage
	report := make([]byte, 8+unsafe.Sizeof(usage))
	_, err = io.ReadFull(p.status, report)
	err = errors.Join(reported(err), p.status.Close(), p.pidfd.Close())
	if err != nil {
		return status, used, err
	}
	status = syscall.WaitStatus(binary.NativeEndian.Uint32(report))
	usage = *(*syscall.Rusage)(unsafe.Pointer(&report[8]))
	return status, rusageOf(usage), nil
}

// reported explains the end of a report that did not come: only a reaper that was
// killed makes none, and what became of its command nobody knows.
func reported(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Op: "wait", Err: errors.New("the command's reaper was killed from outside")}
	}
	return err
}
