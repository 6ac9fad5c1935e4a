//go:build !linux

package workspace

import (
	"context"
	"io"
)

// Changes returns ErrUnsupported on this system.
func (o *Overlay) Changes(context.Context) ([]Change, error) { return nil, ErrUnsupported }

// Diff returns ErrUnsupported on this system.
func (o *Overlay) Diff(context.Context, io.Writer) error { return ErrUnsupported }

// Commit returns ErrUnsupported on this system.
func (o *Overlay) Commit(context.Context, CommitOptions) (*Committed, error) {
	return nil, ErrUnsupported
}
