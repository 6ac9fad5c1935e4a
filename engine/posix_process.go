//go:build darwin || (linux && (amd64 || arm64))

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// posixProcess is a command.
type posixProcess struct {
	box    *posixBox
	name   string
	pid    int
	tree   *tree
	report *os.File // what goes wrong before the program runs; its end of file
	begin  time.Time
	took   Timing
	reaped bool // under box.mu
	ended  bool // under box.mu: by killTree
	texts  string
}

func (b *posixBox) exec(r execRequest) (process, error) {
	program, err := findProgram(r)
	if err != nil {
		return nil, err
	}
	files, report, err := b.descriptors(r.files)
	if err != nil {
		return nil, err
	}
	stderr := len(files) - 1
	defer files[2].Close()
	argv, env, err := r.plan.launch(b.m.host.SandboxExec, program, r.argv[1:], stderr, r)
	if err != nil {
		return nil, errors.Join(err, report.Close())
	}
	p := &posixProcess{box: b, name: r.argv[0], texts: r.texts, report: report, begin: time.Now()}
	attr := &syscall.ProcAttr{Dir: r.dir, Env: env, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: r.terminal, Credential: b.m.credential(b.made)}}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil, errors.Join(ErrClosed, report.Close())
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
		err = fmt.Errorf("start %s in %s: %w", argv[0], r.dir, err)
		if errors.Is(err, syscall.E2BIG) {
			err = &ExecError{Name: p.name, Err: syscall.E2BIG}
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

// descriptors are those of the launcher: the command's, but that its standard
// error comes after the others, and the launcher's own is the report.
func (b *posixBox) descriptors(theirs []*os.File) (files []*os.File, report *os.File, err error) {
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
func findProgram(r execRequest) (string, error) {
	err := error(syscall.ENOENT)
	for _, name := range r.paths {
		at := name
		if !filepath.IsAbs(at) {
			at = filepath.Join(r.dir, at)
		}
		st, serr := os.Stat(at)
		switch {
		case serr != nil:
			continue
		case st.IsDir() || unix.Access(at, unix.X_OK) != nil:
			err = syscall.EACCES
			continue
		}
		if !filepath.IsAbs(name) { // so that the shell neither looks for it nor takes it for an option
			name = "./" + name
		}
		return name, nil
	}
	return "", &ExecError{Name: r.argv[0], NotFound: err == syscall.ENOENT, Err: err}
}

// setupError waits until the program runs: the report has been closed, and has the
// launcher's last word in it. A command that has been killed before that has run,
// as far as anyone can tell.
func (p *posixProcess) setupError() error {
	var said bytes.Buffer
	_, err := io.Copy(&said, io.LimitReader(p.report, 1<<20)) // bash may complain about what the environment has
	if errors.Is(err, os.ErrDeadlineExceeded) {
		drain(&said, p.report) // somebody else holds it, or we are late; see unblock
		err = nil
	}
	p.took.Total = time.Since(p.begin)
	if err = errors.Join(err, p.report.Close()); err != nil {
		return err
	}
	text, done := strings.CutSuffix(said.String(), launched)
	if done || p.killed() {
		return nil
	}
	return seatbeltError(strings.TrimSpace(text), fmt.Errorf("start %s: it ended before it ran", p.name))
}

// unblock ends the wait for the end of the report some time after the command's, or
// its kill. Another command may have it open: without isolation, by /proc.
func (p *posixProcess) unblock() {
	_ = p.report.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // it may have been closed
}

// killed tells whether it has been told to end.
func (p *posixProcess) killed() bool {
	p.box.mu.Lock()
	defer p.box.mu.Unlock()
	return p.ended || p.box.ended
}

func (p *posixProcess) started() error {
	err := p.setupError()
	if err != nil {
		_, _, werr := p.wait()
		err = errors.Join(err, werr)
	}
	return err
}

func (p *posixProcess) timing() Timing     { return p.took }
func (p *posixProcess) refused() []Refusal { return nil }

// release removes what was written for the command to read.
func (p *posixProcess) release() error {
	if p.texts == "" {
		return nil
	}
	if err := p.box.remove(p.texts); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// wait reaps the command. Before that it looks once more: what has been left
// behind is told by its group, and the group by its leader.
func (p *posixProcess) wait() (status syscall.WaitStatus, used rusage, err error) {
	defer p.box.running.Done()
	err = waitable(p.pid)
	p.box.mu.Lock()
	defer p.box.mu.Unlock()
	if _, serr := p.box.scanLocked(); err == nil {
		err = serr
	}
	var usage syscall.Rusage
	for {
		_, werr := syscall.Wait4(p.pid, &status, 0, &usage)
		if werr != syscall.EINTR {
			p.reaped = true
			p.tree.reaped()
			p.unblock()
			p.box.procs = slices.DeleteFunc(p.box.procs, func(o *posixProcess) bool { return o == p })
			return status, rusageOf(usage), errors.Join(err, werr)
		}
	}
}

func (p *posixProcess) signal(sig syscall.Signal, group bool) error {
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

// killTree kills until nothing is left, but what cannot be killed.
func (p *posixProcess) killTree() error {
	p.box.mu.Lock()
	p.ended = true
	p.unblock()
	p.box.mu.Unlock()
	return p.box.until(func() []*tree { return []*tree{p.tree} })
}
