package workspace

import (
	"os"
	"sync"
	"time"
)

// An Overlay is a directory and what a sandbox has written above it. Its methods
// may be called concurrently, also while a guest writes; what they say is then what
// was so at some moment for each path, not for all of them at one.
type Overlay struct {
	// Upper and Lower are open for reading; they are the caller's to close.
	Upper, Lower *os.File
	// Since is when the sandbox started. What has changed in Lower after it, and not
	// by Commit, is a conflict. A change within the same tick of the kernel's clock,
	// up to 10 ms, is not noticed.
	Since time.Time
	// Rules are what Commit may not change.
	Rules Rules
	// Slack is how many bytes copies of hard links may come to in a commit, beyond
	// the files themselves.
	Slack int64
	// As calls a function as the user that owns the files; nil calls it as it is.
	As func(func() error) error

	mu        sync.Mutex      // held by Commit
	committed map[string]mark // what Lower is there because of Commit
}

func (o *Overlay) as(f func() error) error {
	if o.As == nil {
		return f()
	}
	return o.As(f)
}
