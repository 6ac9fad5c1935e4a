package engine

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/workspace"
)

// ErrBusy is a Commit while a command runs.
var ErrBusy = errors.New("a command is running")

// overlaid tells whether the workspace is written to in a layer above it.
func (p *Plan) overlaid() bool { return p.Spec.FS.WorkspaceMode == WorkspaceOverlay }

func checkOverlay(s Spec) error {
	f := s.FS
	var errs []error
	switch f.WorkspaceMode {
	case "", WorkspaceDirect, WorkspaceOverlay:
	default:
		errs = append(errs, invalid("workspace mode %q: neither %s nor %s", f.WorkspaceMode, WorkspaceDirect, WorkspaceOverlay))
	}
	overlay := f.WorkspaceMode == WorkspaceOverlay
	switch {
	case f.Workspace == "" && f.WorkspaceMode != "":
		errs = append(errs, invalid("workspace mode %s without a workspace", f.WorkspaceMode))
	case !overlay && f.Upper != "":
		errs = append(errs, invalid("upper %s: only a workspace of mode %s has one", f.Upper, WorkspaceOverlay))
	case f.Workspace == "" && s.Limits.Workspace != 0:
		errs = append(errs, invalid("limit workspace: without a workspace"))
	case f.Upper != "" && s.Limits.Workspace != 0 && s.Limits.Workspace != Unlimited:
		errs = append(errs, invalid("limit workspace: nothing limits what is written to the upper %s: leave out one of them", f.Upper))
	}
	if f.Upper != "" {
		errs = append(errs, hostPath("upper", f.Upper))
	}
	return errors.Join(errs...)
}

// overlay is the node of the workspace, at its real path.
func (p *Plan) overlay(src rootfs.Source) rootfs.Node {
	return rootfs.Node{Path: src.Path, Kind: rootfs.Overlay, Source: src, Mode: src.Mode&0o777 | 0o700,
		Size: tmpfsLimit(p.limits.Workspace), Inodes: tmpfsLimit(p.limits.TmpFiles)}
}

// linkWorkspace makes the name by which an overlaid workspace was asked for, if
// that is another than the real one: two overlays cannot share an upper. Where the
// name lies in a tree of the host's, it is there.
func (p *Plan) linkWorkspace() {
	if !p.overlaid() || p.workspace == nil {
		return
	}
	at := filepath.Clean(p.Spec.FS.Workspace)
	if at != p.workspace.Path && p.table.Makes(at) {
		p.table = p.table.Add(rootfs.Node{Path: at, Kind: rootfs.Symlink, Data: p.workspace.Path})
	}
}

// decideOverlay says who limits what is written.
func (p *Plan) decideOverlay(h Host) error {
	if !p.overlaid() || p.workspace == nil || p.bare() {
		return nil
	}
	i := slices.IndexFunc(p.table, func(n rootfs.Node) bool { return n.Path == p.workspace.Path && n.Kind == rootfs.Overlay })
	if i < 0 {
		return nil // what is wrong has been said
	}
	upper := p.Spec.FS.Upper
	if upper == "" {
		if !kernelAtLeast(h.Kernel, "6.6") {
			return &UnsupportedError{Feature: "an overlay in memory over the workspace", Since: "6.6",
				Remedy: "an older tmpfs cannot remember that a directory was removed and made again: give it an upper directory on disk"}
		}
		p.Limits = append(p.Limits, Limit{"workspace", limitText(p.limits.Workspace), "tmpfs"})
		return nil
	}
	src, err := lookUp("upper", upper, h)
	switch {
	case err != nil:
		return err
	case !src.Dir:
		return invalid("upper %s: not a directory", upper)
	case rootfs.Within(p.workspace.Path, src.Path):
		return invalid("upper %s: in the workspace, which it would become a part of", upper)
	}
	p.table[i].Upper, p.table[i].Size, p.table[i].Inodes = src, 0, 0
	p.Limits = append(p.Limits, Limit{"workspace", "unlimited", ""})
	return nil
}

// protectOnCommit makes rules of what a warden would have mounted: in an overlay
// everything can be changed, and what is protected does not leave it. Of what lies
// outside of the workspace nothing can be changed.
func (p *Plan) protectOnCommit(w *warden, ws *ghostDir) (nodes []rootfs.Node) {
	relative := func(at string) (string, bool) {
		for _, dir := range ws.at {
			if rel, err := filepath.Rel(dir, at); err == nil && filepath.IsLocal(rel) {
				return rel, true
			}
		}
		return "", false
	}
	for _, n := range w.nodes {
		rel, inside := relative(n.Path)
		switch {
		case !inside:
			n.ReadOnly = true
			nodes = append(nodes, n)
		case n.ReadOnly:
			p.rules.Protected = append(p.rules.Protected, rel)
		default:
			p.rules.Pinned = append(p.rules.Pinned, rel)
		}
	}
	for _, d := range w.ghostDirs {
		for _, g := range d.ghosts {
			for _, at := range g.at {
				if rel, inside := relative(at); inside {
					p.rules.Protected = append(p.rules.Protected, rel)
				}
			}
		}
	}
	for _, list := range []*[]string{&p.rules.Protected, &p.rules.Pinned} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	p.notes = w.notes
	return nodes
}

// layersOf is the sandbox's overlay, for an operation of that name.
func (s *Sandbox) layersOf(op string) (*layers, error) {
	if !s.plan.overlaid() {
		return nil, &Error{Op: op, Path: s.plan.Spec.FS.Workspace, Err: invalid("the workspace is not of mode %s", WorkspaceOverlay)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.discarded {
		return nil, &Error{Op: op, Path: s.plan.Spec.FS.Workspace, Err: ErrClosed}
	}
	return s.box.overlay(), nil
}

// Changes lists what commands have changed in a workspace of mode overlay, in the
// order of paths: what differs from the directory as it is now. It may be called at
// any time until Discard, also when the sandbox has ended, for whatever reason;
// while commands run it tells what it came across. The errors are those of
// workspace.Overlay.Changes; ErrClosed after Discard; ErrInvalid without an overlay.
func (s *Sandbox) Changes(ctx context.Context) (list []workspace.Change, err error) {
	err = s.withLayers("list changes", func(l *layers) error {
		list, err = l.Changes(ctx)
		return err
	})
	return list, err
}

// Diff writes the changes as a patch, as workspace.Overlay.Diff does, when Changes
// may be called.
func (s *Sandbox) Diff(ctx context.Context, w io.Writer) error {
	return s.withLayers("compare", func(l *layers) error { return l.Diff(ctx, w) })
}

// Commit applies the changes to the directory, as workspace.Overlay.Commit does,
// which has the promises and the errors. It may be called more than once. While a
// command runs, which a Session is, it is ErrBusy, and none starts until it returns; what a command has
// left behind in the background is not waited for: Close the sandbox first, so that
// nothing goes on writing. What is protected in a workspace is refused, unless
// FS.AllowWrite lists it.
func (s *Sandbox) Commit(ctx context.Context, o workspace.CommitOptions) (done *workspace.Committed, err error) {
	if !s.commands.TryLock() {
		return nil, &Error{Op: "commit", Path: s.plan.Spec.FS.Workspace, Err: ErrBusy}
	}
	defer s.commands.Unlock()
	err = s.withLayers("commit", func(l *layers) error {
		done, err = l.Commit(ctx, o)
		return err
	})
	return done, err
}

// Discard drops what has been written and not committed, so that the memory or the
// directory it takes up is free when the sandbox has ended. It is safe to call
// twice, and waits for what reads the changes. Closing the Engine discards what is
// left. Without an overlay there is nothing to do.
func (s *Sandbox) Discard() error {
	s.mu.Lock()
	drop := !s.discarded && s.ended
	s.discarded = true
	s.mu.Unlock()
	if !drop {
		return nil // watch does it, or it has been done
	}
	return s.drop()
}

// drop frees the layers. Nothing uses them any more, but who reads them.
func (s *Sandbox) drop() error {
	if s.box.overlay() == nil {
		return nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	s.engine.uppers.Delete(s)
	if err := s.box.overlay().discard(); err != nil {
		return &Error{Op: "discard", Path: s.plan.Spec.FS.Workspace, Err: err}
	}
	return nil
}

func (s *Sandbox) withLayers(op string, f func(*layers) error) error {
	s.reading.RLock()
	defer s.reading.RUnlock()
	l, err := s.layersOf(op)
	if err != nil {
		return err
	}
	if err := f(l); err != nil {
		return &Error{Op: op, Path: s.plan.Spec.FS.Workspace, Err: err}
	}
	return nil
}
