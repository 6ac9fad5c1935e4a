//go:build darwin || (linux && (amd64 || arm64))

package procbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/handoff"
)

// process is a command.
type process struct {
	box     *procBox
	name    string
	pid     int
	tree    *tree
	report  *os.File // what goes wrong before the program runs; its end of file
	begin   time.Time
	before  box.Usage // of the sandbox, when the command came in
	reaped  bool      // under box.mu
	ended   bool      // under box.mu: by KillTree
	textDir string    // "": none
}

// Exec starts a command.
func (b *procBox) Exec(r box.Request) (box.Process, error) {
	before := b.activity.Enter(b.Usage)
	p, err := b.exec(r)
	if err != nil {
		b.activity.Leave(box.Usage{}, 0)
		if r.TextDir != "" {
			err = errors.Join(err, b.dir.RemoveChild(r.TextDir))
		}
		return nil, err
	}
	p.before = before
	return p, nil
}

func (b *procBox) exec(r box.Request) (*process, error) {
	if err := b.writeTexts(r); err != nil {
		return nil, err
	}
	program, err := findProgram(r)
	if err != nil {
		return nil, err
	}
	files, report, err := b.descriptors(r.Files)
	if err != nil {
		return nil, err
	}
	stderr := len(files) - 1
	defer files[2].Close()
	argv, env, err := commandLine(b.config, b.m.host.SandboxExec, program, stderr, r)
	if err != nil {
		return nil, errors.Join(err, report.Close())
	}
	p := &process{box: b, name: r.Argv[0], textDir: r.TextDir, report: report, begin: time.Now()}
	attr := &syscall.ProcAttr{Dir: r.Dir, Env: env, Sys: &syscall.SysProcAttr{
		Setsid: true, Setctty: r.Terminal, Credential: b.m.credential(b.config)}}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil, errors.Join(box.ErrClosed, report.Close())
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	watcher, err := b.watcher.fd() // now that it cannot be closed meanwhile
	if err != nil {
		return nil, errors.Join(err, report.Close())
	}
	attr.Files = append(attr.Files, watcher)
	p.pid, err = syscall.ForkExec(argv[0], argv, attr)
	runtime.KeepAlive(files)
	if err != nil {
		err = fmt.Errorf("start %s in %s: %w", argv[0], r.Dir, err)
		if errors.Is(err, syscall.E2BIG) {
			err = &box.ExecError{Name: p.name, Err: syscall.E2BIG}
		}
		return nil, errors.Join(err, report.Close())
	}
	p.tree = newTree(p.pid)
	b.trees, b.procs = append(b.trees, p.tree), append(b.procs, p)
	b.running.Add(1)
	b.forks.add(p.pid)
	b.watcher.told(p.pid)
	return p, nil
}

// writeTexts fills the command's directory of texts. It is the guest's, who makes a
// lock in it.
func (b *procBox) writeTexts(r box.Request) error {
	if r.TextDir == "" {
		return nil
	}
	return b.owner.Do(func() error {
		err := os.Mkdir(r.TextDir, 0o700)
		for i, text := range r.Texts {
			if err == nil {
				err = os.WriteFile(filepath.Join(r.TextDir, strconv.Itoa(4+i)), []byte(text), 0o400)
			}
		}
		return err
	})
}

// descriptors are those of the launcher: the command's, but that its standard
// error comes after the others, and the launcher's own is the report.
func (b *procBox) descriptors(theirs []*os.File) (files []*os.File, report *os.File, err error) {
	for _, f := range theirs {
		if f == nil {
			f = b.m.null
		}
		files = append(files, f)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	stderr := files[2]
	files[2] = write
	return append(files, stderr), read, nil
}

// findProgram looks for it as the shell would, since the files are the host's, so
// that what is not there is told from what exits with 127.
func findProgram(r box.Request) (string, error) {
	err := error(syscall.ENOENT)
	for _, name := range r.Paths {
		at := name
		if !filepath.IsAbs(at) {
			at = filepath.Join(r.Dir, at)
		}
		st, serr := os.Stat(at)
		switch {
		case serr != nil:
			continue
		case st.IsDir():
			err = syscall.EISDIR
			continue
		case unix.Access(at, unix.X_OK) != nil:
			err = syscall.EACCES
			continue
		}
		if !filepath.IsAbs(name) { // so that the shell neither looks for it nor takes it for an option
			name = "./" + name
		}
		return name, nil
	}
	return "", &box.ExecError{Name: r.Argv[0], NotFound: err == syscall.ENOENT, Err: err}
}

// Started waits until the program runs: the report has been closed, and has the
// launcher's last word in it.
func (p *process) Started() (box.Timing, error) {
	var said bytes.Buffer
	_, err := io.Copy(&said, io.LimitReader(p.report, 1<<20)) // bash may complain about what the environment has
	if errors.Is(err, os.ErrDeadlineExceeded) {
		handoff.Drain(&said, p.report) // somebody else holds it, or we are late; see unblock
		err = nil
	}
	took := box.Timing{Total: time.Since(p.begin)}
	if err = errors.Join(err, p.report.Close()); err != nil {
		return took, err
	}
	text, done := strings.CutSuffix(said.String(), launched)
	if done || p.killed() {
		return took, nil
	}
	return took, seatbeltError(strings.TrimSpace(text), fmt.Errorf("start %s: it ended before it ran", p.name))
}

// unblock ends the wait for the end of the report some time after the command's, or
// its kill. Another command may have it open: without isolation, by /proc.
func (p *process) unblock() {
	_ = p.report.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // it may have been closed
}

// killed reports whether it has been told to end.
func (p *process) killed() bool {
	p.box.mu.Lock()
	defer p.box.mu.Unlock()
	return p.ended || p.box.ended
}

// Release removes what was written for the command to read.
func (p *process) Release() error {
	if p.textDir == "" {
		return nil
	}
	return p.box.dir.RemoveChild(p.textDir)
}

// Wait reaps the command. Before that it looks once more: what has been left behind
// is told by its group, and the group by its leader.
func (p *process) Wait() (box.Exit, error) {
	defer p.box.running.Done()
	err := waitable(p.pid)
	status, usage, rerr := p.reap()
	e := box.ExitOf(status, usage)
	at := p.box.activity.Now()
	now := p.box.Usage()
	e.Used = now.Since(p.before)
	e.Used.CPU = max(e.Used.CPU, e.User+e.System)
	p.box.activity.Leave(now, at)
	return e, errors.Join(err, rerr)
}

func (p *process) reap() (status syscall.WaitStatus, usage syscall.Rusage, err error) {
	p.box.mu.Lock()
	defer p.box.mu.Unlock()
	_, err = p.box.scanLocked()
	for {
		_, werr := syscall.Wait4(p.pid, &status, 0, &usage)
		if werr != syscall.EINTR {
			p.reaped = true
			p.tree.reaped()
			p.unblock()
			p.box.procs = slices.DeleteFunc(p.box.procs, func(o *process) bool { return o == p })
			return status, usage, errors.Join(err, werr)
		}
	}
}

// Signal signals the command, or its process group, which it leads.
func (p *process) Signal(sig syscall.Signal, group bool) error {
	p.box.mu.Lock()
	defer p.box.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	pid := p.pid
	if group {
		pid = -pid
	}
	err := syscall.Kill(pid, sig)
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return err
}

// KillTree kills until nothing is left, but what cannot be killed.
func (p *process) KillTree() error {
	p.box.mu.Lock()
	p.ended = true
	p.unblock()
	p.box.mu.Unlock()
	return p.box.until(func() []*tree { return []*tree{p.tree} })
}

// Used is what the sandbox has used since the command was started.
func (p *process) Used() box.Usage { return p.box.Usage().Since(p.before) }
