package workspace

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is what has become of a path: "created", "modified" or "deleted".
type Kind string

// The kinds of a Change.
const (
	Created  Kind = "created"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
)

// Type is what stands at a path: "file", "dir", "symlink", or "fifo", "socket" and
// "device", which are listed but never committed.
type Type string

// The types of what stands at a path.
const (
	File    Type = "file"
	Dir     Type = "dir"
	Symlink Type = "symlink"
	FIFO    Type = "fifo"
	Socket  Type = "socket"
	Device  Type = "device"
)

// commits tells whether a type can be committed.
func (t Type) commits() bool { return t == File || t == Dir || t == Symlink }

// Info describes what stands at a path. Owners and extended attributes are not
// part of it.
type Info struct {
	Type Type
	Size int64  // of a file, in bytes, holes included; of a symlink, its target's length
	Mode uint32 // permission bits, without setuid, setgid and sticky
}

// Change is a path at which the overlay and the directory differ. What is beneath
// a directory that was created or deleted is listed, too.
type Change struct {
	Path string // relative to the workspace, with slashes; any bytes but NUL
	Kind Kind
	Info      // now; Deleted: what it was
	Was  Info // Modified: what it was

	lower, upper mark  // what was seen in each layer
	blocks       int64 // bytes that the upper takes up
	links        uint64
}

// mark tells whether a file of the host is as it was: any change to one, its
// content or its name, sets the time.
type mark struct {
	dev, ino uint64
	ctime    int64 // in nanoseconds; 0: there is nothing
}

// Rules are paths that a commit may not change.
type Rules struct {
	Protected []string // with what is beneath them
	Pinned    []string // directories that have to stay directories
}

// allows tells whether a change keeps to the rules. Names count as the same in
// upper and lower case, as they do to some file systems and to git on others.
func (r Rules) allows(c Change) bool {
	p := strings.ToLower(c.Path)
	stays := c.Kind != Deleted && c.Type == Dir
	for _, name := range r.Protected {
		name = strings.ToLower(name)
		if within(name, p) || within(p, name) && !stays && c.Kind != Deleted {
			return false
		}
	}
	for _, name := range r.Pinned {
		if strings.ToLower(name) == p && !stays {
			return false
		}
	}
	return true
}

// within tells whether p is dir or lies beneath it.
func within(dir, p string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// Errors that callers match with errors.Is.
var (
	// ErrConflict is a path that the host has changed since the sandbox started.
	ErrConflict = errors.New("changed on the host meanwhile")
	// ErrProtected is a change that the Rules do not allow.
	ErrProtected = errors.New("protected")
	// ErrUnsupported is a system that has no overlays.
	ErrUnsupported = errors.New("unsupported")
)

// RefusedError is a commit that was refused as a whole: nothing was changed. It
// unwraps to ErrConflict or ErrProtected.
type RefusedError struct {
	Paths []string // what it is about, sorted
	Err   error
}

func (e *RefusedError) Error() string {
	const show = 5
	var names []string
	for _, p := range e.Paths[:min(show, len(e.Paths))] {
		names = append(names, fmt.Sprintf("%q", p))
	}
	more := ""
	if n := len(e.Paths) - show; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("nothing was committed: %v: %s%s", e.Err, strings.Join(names, ", "), more)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// CommitError is a commit that failed half-way. Each file is as it was or as it
// was to become.
type CommitError struct {
	Path    string   // where it failed
	Applied []Change // what has been done before
	Err     error
}

func (e *CommitError) Error() string {
	return fmt.Sprintf("commit %q, after %d changes: %v", e.Path, len(e.Applied), e.Err)
}

func (e *CommitError) Unwrap() error { return e.Err }

// CommitOptions say how to commit. The zero value is the careful way.
type CommitOptions struct {
	// Force also replaces what the host has changed since the sandbox started.
	Force bool
}

// Committed is what a commit did.
type Committed struct {
	Applied []Change
	Skipped []Change // FIFOs, sockets and devices, and what they replaced
}
