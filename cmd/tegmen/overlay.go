package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// showsHome reports whether the user's home directory is the workspace or in it, under
// whatever name.
func (o *options) showsHome() bool {
	home, err := os.UserHomeDir()
	if err != nil || o.spec.FS.Workspace == "" {
		return false
	}
	home, err = filepath.EvalSymlinks(home)
	if err != nil {
		return false
	}
	dir, err := filepath.EvalSymlinks(o.spec.FS.Workspace)
	return err == nil && home != "/" && rootfs.Within(dir, home)
}

func cutLast(v string) (before, after string, found bool) {
	i := strings.LastIndexByte(v, ',')
	if i < 0 {
		return v, "", false
	}
	return v[:i], v[i+1:], true
}

// patchFile takes the file of --diff. It refuses, before the program runs, what no patch
// can be written to.
func patchFile(v string) (string, error) {
	if v == "" {
		return "", errors.New("name a file, or use - for standard output")
	}
	if v == "-" {
		return v, nil
	}
	var at *fs.PathError
	if _, err := os.Stat(filepath.Dir(v)); errors.As(err, &at) {
		return "", fmt.Errorf("%s: %w", at.Path, at.Err)
	}
	st, err := os.Stat(v)
	switch {
	case err != nil: // there is none yet
	case st.IsDir():
		return "", errors.New("a directory: name a file")
	case st.Mode()&fs.ModeSocket != 0:
		return "", errors.New("a socket: name a file")
	case st.Mode()&fs.ModeDevice != 0 && st.Mode()&fs.ModeCharDevice == 0:
		return "", errors.New("a block device, whose contents the patch would overwrite: name a file")
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
		switch n := len(list); {
		case n == 1:
			fmt.Fprintln(os.Stderr, "tegmen: 1 change is not kept: --diff - shows it, --commit applies it")
		case n > 1:
			fmt.Fprintf(os.Stderr, "tegmen: %d changes are not kept: --diff - shows them, --commit applies them\n", n)
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
// an existing file, since programs may write to that directory. What is not a file is
// written to, and stays: a device, a FIFO, or a descriptor as /dev/stdout and the shell's
// >(…) name it.
func (o *options) writeDiff(ctx context.Context, box *engine.Sandbox) (err error) {
	if to, err := openStream(o.diff); err != nil {
		return fmt.Errorf("--diff %s: %w", o.diff, err)
	} else if to != nil {
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
