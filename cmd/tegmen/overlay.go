package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/workspace"
)

// parseWorkspace takes DIR followed by options. The name of a directory may contain
// commas: everything that is not an option belongs to it.
func parseWorkspace(v string, s *engine.Spec) error {
	s.FS.WorkspaceMode, s.FS.Upper, s.Limits.Workspace = "", "", 0 // of one given before
	dir := v
	for {
		rest, last, ok := cutLast(dir)
		key, value, isOption := strings.Cut(last, "=")
		var err error
		switch {
		case !ok || !isOption:
			s.FS.Workspace, err = hostDir(dir)
			return err
		case key == "mode":
			s.FS.WorkspaceMode = engine.WorkspaceMode(value)
			if value != string(engine.WorkspaceDirect) && value != string(engine.WorkspaceOverlay) {
				err = errors.New("use rw or overlay")
			}
		case key == "size":
			s.Limits.Workspace, err = parseBytes(value)
		case key == "upper":
			s.FS.Upper, err = hostDir(value)
		default:
			s.FS.Workspace, err = hostDir(dir)
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", last, err)
		}
		dir = rest
	}
}

// openSpecial opens what is there if it is neither a file nor to be replaced by one; nil
// if it is.
func openSpecial(name string) (*os.File, error) {
	at, err := filepath.Abs(name)
	if err != nil || name == "-" {
		return nil, err
	}
	inDev := rootfs.Within("/dev", at) || rootfs.Within("/proc", at)
	st, err := os.Lstat(at)
	if err != nil || !inDev && (st.Mode().IsRegular() || st.Mode()&os.ModeSymlink != 0) {
		return nil, nil // the next step reports it
	}
	// A FIFO without a reader is an error, and does not block.
	return os.OpenFile(at, os.O_WRONLY|syscall.O_NONBLOCK, 0)
}

func cutLast(v string) (before, after string, found bool) {
	i := strings.LastIndexByte(v, ',')
	if i < 0 {
		return v, "", false
	}
	return v[:i], v[i+1:], true
}

func patchFile(v string) (string, error) {
	if v == "" {
		return "", errors.New("name a file, or use - for standard output")
	}
	return v, nil
}

// overlayResult is the outcome of a workspace with an overlay.
type overlayResult struct {
	changes   []workspace.Change
	committed bool
	failure   error // of the commit
	listed    bool
}

// collect lists, diffs and commits what a command has changed, as the flags say. It closes
// the sandbox first, so that nothing in it goes on writing. The context is done when the
// user interrupts twice.
func (o *options) collect(ctx context.Context, box *engine.Sandbox, res *engine.Result) error {
	if err := box.Close(); err != nil {
		return err
	}
	if o.json {
		list, err := box.Changes(ctx)
		if err != nil {
			return err
		}
		o.overlay.changes, o.overlay.listed = list, true
	}
	if o.diff != "" {
		if err := o.writeDiff(ctx, box); err != nil {
			return err
		}
	}
	if !o.commit && o.diff == "" && !o.json {
		list, err := box.Changes(ctx)
		if len(list) > 0 {
			fmt.Fprintf(os.Stderr, "tegmen: %d changes are not kept: --diff - shows them, --commit applies them\n", len(list))
		}
		return err
	}
	if !o.commit {
		return nil
	}
	if res.Outcome != engine.OutcomeOK {
		fmt.Fprintln(os.Stderr, "tegmen: nothing was committed: the program did not exit with 0")
		return nil
	}
	done, err := box.Commit(ctx, workspace.CommitOptions{})
	o.overlay.committed, o.overlay.failure = err == nil, err
	if done != nil {
		for _, c := range done.Skipped {
			fmt.Fprintf(os.Stderr, "tegmen: not committed: %q: %s\n", c.Path, c.Type)
		}
	}
	return nil
}

// writeDiff replaces the file of the patch: it neither follows a link there nor writes to
// an existing file, since programs may write to that directory. A device, a FIFO or what
// is in /dev (/dev/stdout, the shell's >(…)) is written to.
func (o *options) writeDiff(ctx context.Context, box *engine.Sandbox) (err error) {
	if to, err := openSpecial(o.diff); to != nil || err != nil {
		if err != nil {
			return err
		}
		buffer := bufio.NewWriter(to)
		return errors.Join(box.Diff(ctx, buffer), buffer.Flush(), to.Close())
	}
	to := os.Stdout
	if o.diff != "-" {
		temp, err := os.CreateTemp(filepath.Dir(o.diff), ".tegmen-diff-")
		if err != nil {
			return err
		}
		to = temp
	}
	buffer := bufio.NewWriter(to)
	err = errors.Join(box.Diff(ctx, buffer), buffer.Flush())
	if o.diff == "-" {
		return err
	}
	err = errors.Join(err, to.Chmod(0o644), to.Close())
	if err == nil {
		err = os.Rename(to.Name(), o.diff)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(to.Name()))
	}
	return err
}
