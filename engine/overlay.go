package engine

import (
	"context"
	"io"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/workspace"
)

// Changes lists what commands have changed in a workspace of mode overlay, in the
// order of paths: what differs from the directory as it is now. It may be called at
// any time until Discard, even after the sandbox has ended, for whatever reason;
// while commands run it lists what it came across. The errors are those of
// workspace.Overlay.Changes; ErrClosed after Discard; ErrInvalid without an overlay.
func (s *Sandbox) Changes(ctx context.Context) (list []workspace.Change, err error) {
	err = s.withLayers("list changes", func(l *box.Layers) error {
		list, err = l.Changes(ctx)
		return err
	})
	return list, err
}

// Diff writes the changes as a patch, as workspace.Overlay.Diff does, whenever
// Changes may be called.
func (s *Sandbox) Diff(ctx context.Context, w io.Writer) error {
	return s.withLayers("compare", func(l *box.Layers) error { return l.Diff(ctx, w) })
}

// Commit applies the changes to the directory, as workspace.Overlay.Commit does,
// which documents the promises and the errors. It may be called more than once. It
// is ErrBusy while a command runs, and a Session is one; none starts until it
// returns. It does not wait for what a command has left behind in the background:
// Close the sandbox first, so that nothing goes on writing. What is protected in a
// workspace is refused, unless FS.AllowWrite lists it.
func (s *Sandbox) Commit(ctx context.Context, o workspace.CommitOptions) (done *workspace.Committed, err error) {
	if !s.commands.TryLock() {
		return nil, s.overlayError("commit", ErrBusy)
	}
	defer s.commands.Unlock()
	err = s.withLayers("commit", func(l *box.Layers) error {
		done, err = l.Commit(ctx, o)
		return err
	})
	return done, err
}

// Discard drops what has been written and not committed, so that the memory or the
// directory it takes up is free once the sandbox has ended. It is safe to call
// twice, and waits for readers of the changes. Closing the Engine discards what is
// left. Without an overlay it does nothing.
func (s *Sandbox) Discard() error {
	s.mu.Lock()
	drop := !s.discarded && s.ended
	s.discarded = true
	s.mu.Unlock()
	if !drop {
		return nil // reap does it, or it has been done
	}
	return s.drop()
}

// drop frees the layers. Nothing uses them any more but readers.
func (s *Sandbox) drop() error {
	if s.layers == nil {
		return nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	s.engine.uppers.Delete(s)
	return s.overlayError("discard", s.layers.Discard())
}

// withLayers calls f with the sandbox's overlay, for an operation of that name.
func (s *Sandbox) withLayers(op string, f func(*box.Layers) error) error {
	s.reading.RLock()
	defer s.reading.RUnlock()
	if s.layers == nil {
		return s.overlayError(op, invalid("the workspace is not of mode %s", WorkspaceOverlay))
	}
	s.mu.Lock()
	discarded := s.discarded
	s.mu.Unlock()
	if discarded {
		return s.overlayError(op, ErrClosed)
	}
	return s.overlayError(op, f(s.layers))
}

func (s *Sandbox) overlayError(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Path: s.plan.Spec.FS.Workspace, Err: fromBox(err)}
}
