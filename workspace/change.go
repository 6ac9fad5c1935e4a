package workspace

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says how a path has changed: "created", "modified" or "deleted".
type Kind string

// The kinds of a Change.
const (
	Created  Kind = "created"  // the path did not exist
	Modified Kind = "modified" // type, content or permissions differ
	Deleted  Kind = "deleted"  // the path no longer exists
)

// Type is a type of file. FIFOs, sockets and devices are listed but never committed.
type Type string

// The types of files.
const (
	File    Type = "file"    // regular file
	Dir     Type = "dir"     // directory
	Symlink Type = "symlink" // symbolic link
	FIFO    Type = "fifo"    // named pipe
	Socket  Type = "socket"  // Unix socket
	Device  Type = "device"  // block or character device
)

// Info describes a file, without its owner and extended attributes.
type Info struct {
	Type Type   // the type of file
	Size int64  // of a file, its length in bytes with holes; of a symlink, its target's length; otherwise 0
	Mode uint32 // permission bits, without setuid, setgid and sticky
}

// Change is a path at which the overlay and the directory differ. The contents of
// created and deleted directories are listed as well.
type Change struct {
	Path string // relative to the workspace, with slashes; any bytes but NUL
	Kind Kind   // how it has changed
	Info        // what it is now; for Deleted, what it was
	Was  Info   // for Modified, what it was; otherwise zero

	lower, upper stamp // of the file seen in each layer
	blocks       int64 // bytes allocated in the upper layer
	links        uint64
}

// stamp identifies a state of a file: any change to its content or name sets ctime.
// The zero stamp means that there is no file.
type stamp struct {
	dev, ino uint64
	ctime    int64 // nanoseconds
}

// Rules name paths, relative to the workspace, that a commit may not change.
type Rules struct {
	Protected []string // these paths and everything beneath them
	Pinned    []string // directories that must remain directories
}

// allows reports whether a change complies with the rules. Case is ignored, as some
// file systems do, and git on others.
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

// within reports whether p is dir or lies beneath it.
func within(dir, p string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// Errors that callers match with errors.Is.
var (
	// ErrConflict means that the host has changed a path since the sandbox started.
	ErrConflict = errors.New("changed on the host meanwhile")
	// ErrProtected means that the Rules do not allow a change.
	ErrProtected = errors.New("protected")
	// ErrUnsupported means that this system has no overlays. It wraps
	// errors.ErrUnsupported.
	ErrUnsupported = fmt.Errorf("workspace overlays need Linux: %w", errors.ErrUnsupported)
)

// RefusedError reports a commit that was refused as a whole: nothing was changed.
type RefusedError struct {
	Paths []string // the paths that caused it, sorted
	Err   error    // ErrConflict or ErrProtected
}

// Error names at most five of the paths.
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

// Unwrap returns e.Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// CommitError reports a commit that failed halfway. Each file has either its old or its
// new state, nothing in between.
type CommitError struct {
	Path    string   // where it failed
	Applied []Change // what was done before
	Err     error    // why it failed
}

// Error names the path, the number of applied changes and the cause.
func (e *CommitError) Error() string {
	return fmt.Sprintf("commit %q, after %d changes: %v", e.Path, len(e.Applied), e.Err)
}

// Unwrap returns e.Err.
func (e *CommitError) Unwrap() error { return e.Err }

// CommitOptions say how to commit. The zero value refuses conflicts.
type CommitOptions struct {
	// Force replaces files even if the host has changed them since the sandbox started.
	Force bool
}

// Committed lists what a commit did.
type Committed struct {
	Applied []Change // in the order in which they were done
	Skipped []Change // FIFOs, sockets and devices, and deletions of what they replaced
}
