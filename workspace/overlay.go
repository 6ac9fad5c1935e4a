package workspace

import (
	"os"
	"sync"
	"time"
)

// An Overlay is a directory and the layer of a sandbox's changes above it. Its methods
// may be called concurrently and while a guest writes. The state that they report for
// each path is then one that it had at some moment, not the same moment for all paths.
type Overlay struct {
	// Upper and Lower are the two layers: directories open for reading. The caller
	// closes them.
	Upper, Lower *os.File
	// Since is when the sandbox started. A later change in Lower is a conflict unless
	// Commit made it. A change within the same tick of the kernel's clock, at most 10
	// ms, is not noticed.
	Since time.Time
	// Rules name what Commit may not change.
	Rules Rules
	// Slack limits the additional bytes, 0 or more, that a commit may write because each
	// name of a hard link becomes a copy.
	Slack int64
	// As calls a function with the identity of the files' owner. If it is nil, the
	// function is called directly.
	As func(func() error) error

	mu        sync.Mutex       // held by each method
	committed map[string]stamp // state of the paths that Commit wrote in Lower
}
