//go:build linux && (amd64 || arm64)

package launch

import (
	"sync"

	"golang.org/x/sys/unix"
)

// dumpable is the process's dumpable flag. It is package state because the kernel
// has one per process.
//
// While it is off, /proc/self belongs to root, and a child that shares this memory
// cannot write its id maps. It can be off by accident: os/exec with a Credential
// starts a child that shares this memory and changes its uid, which clears the
// flag.
var dumpable dumpFlag

type dumpFlag struct {
	// Write-locked while the flag is cleared in passing, read-locked while it must
	// be on.
	changing sync.RWMutex

	mu     sync.Mutex
	raised int // how many need it on although it was off
}

// raise turns the flag on until the caller calls lower.
func (d *dumpFlag) raise() (lower func()) {
	d.changing.RLock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.raised == 0 && d.get() == 1 {
		return d.changing.RUnlock
	}
	d.raised++
	d.set(1)
	return func() {
		defer d.changing.RUnlock()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.raised--; d.raised == 0 {
			d.set(0)
		}
	}
}

// keep calls f, which may clear the flag, and restores it.
func (d *dumpFlag) keep(f func() error) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	before := d.get()
	err := f()
	d.set(before)
	return err
}

func (*dumpFlag) get() uintptr {
	v, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0) // cannot fail
	if v == 2 {
		return 0 // a set-user-id program has 2, which cannot be set; 0 is stricter
	}
	return uintptr(v)
}

func (*dumpFlag) set(v uintptr) { _ = unix.Prctl(unix.PR_SET_DUMPABLE, v, 0, 0, 0) } // 0 and 1 are never refused
