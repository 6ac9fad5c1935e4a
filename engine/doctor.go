package engine

import (
	"context"
	"fmt"
)

// Finding is one thing that Diagnose looked at.
type Finding struct {
	What   string // "user namespaces"
	OK     bool
	Detail string // what was found
	Remedy string // what to do, when it is not OK
}

// Diagnose finds out what this kernel and account allow. The last finding is
// the result of really starting a sandbox and a program in it.
func Diagnose(ctx context.Context) []Finding {
	eng, err := Open(Options{})
	if err != nil {
		return []Finding{failed("engine", err)}
	}
	defer eng.Close()
	return append(eng.machine.diagnose(), eng.trial(ctx))
}

func (e *Engine) trial(ctx context.Context) Finding {
	const what = "sandbox"
	box, err := e.Start(ctx, Spec{})
	if err != nil {
		return failed(what, err)
	}
	defer box.Close()
	res, err := box.CommandContext(ctx, "true").Run()
	if err != nil {
		return failed(what, err)
	}
	return Finding{What: what, OK: res.Outcome == OK, Detail: fmt.Sprintf("started, and true ended with %s", res.Outcome)}
}

// failed is a finding made from an error; the error has the remedy in it when
// there is one.
func failed(what string, err error) Finding { return Finding{What: what, Detail: err.Error()} }

// kernelAtLeast compares the first two numbers of a release.
func kernelAtLeast(release, first string) bool {
	var major, minor, wantMajor, wantMinor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	if n, _ := fmt.Sscanf(first, "%d.%d", &wantMajor, &wantMinor); n < 2 {
		return false
	}
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}
