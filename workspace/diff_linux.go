package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// maxText bounds each file whose text is compared, and maxTexts all of them together.
// The patch only says that larger files differ.
const (
	maxText  = 1 << 20
	maxTexts = 64 << 20
)

// Diff writes the changes as a patch for git apply and patch(1), sorted by path. For
// binary files and files above 1 MiB, and for all files after 64 MiB of text, it only
// says that they differ. It leaves out directories, FIFOs, sockets, devices and all
// permissions except the owner's to execute.
func (o *Overlay) Diff(ctx context.Context, to io.Writer) error {
	return o.with(ctx, func(w *walk) error {
		list, err := w.changes()
		if err != nil {
			return err
		}
		left := int64(maxTexts)
		for _, c := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			old, new := content{}, content{}
			if c.Kind == Deleted {
				old, err = w.content(w.lower, c.Path, c.Info, &left)
			} else if c.Kind == Modified {
				old, err = w.content(w.lower, c.Path, c.Was, &left)
			}
			if err != nil {
				return err
			}
			if c.Kind != Deleted {
				if new, err = w.content(w.upper, c.Path, c.Info, &left); err != nil {
					return err
				}
			}
			if err := patch(to, c, old, new); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *walk) content(l layer, rel string, i Info, left *int64) (content, error) {
	switch i.Type {
	case Symlink:
		target, err := l.link(rel)
		if vanished(err) {
			return content{big: true}, nil
		}
		return content{data: []byte(target)}, err
	case File:
		if i.Size > maxText || i.Size > *left {
			return content{big: true}, nil
		}
		*left -= i.Size
		f, _, err := l.file(rel)
		if errors.Is(err, fs.ErrPermission) || vanished(err) { // the guest could not read it either
			return content{big: true}, nil
		}
		if err != nil {
			return content{}, err
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxText+1))
		if len(b) > maxText { // it grew meanwhile
			return content{big: true}, err
		}
		return content{data: b}, err
	}
	return content{}, nil
}
