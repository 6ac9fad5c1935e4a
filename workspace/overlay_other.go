//go:build !linux

package workspace

import (
	"context"
	"io"
)

// Changes is unsupported here.
func (o *Overlay) Changes(context.Context) ([]Change, error) { return nil, ErrUnsupported }

// Diff is unsupported here.
func (o *Overlay) Diff(context.Context, io.Writer) error { return ErrUnsupported }

// Commit is unsupported here.
func (o *Overlay) Commit(context.Context, CommitOptions) (*Committed, error) {
	return nil, ErrUnsupported
}
