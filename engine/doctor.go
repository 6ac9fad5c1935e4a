package engine

import (
	"context"
	"fmt"
)

// Finding is one thing that Diagnose looked at.
type Finding struct {
	What   string // "user namespaces"
	OK     bool   // it works here
	Detail string // what was found
	Remedy string // what to do if it is not OK
}

// Diagnose finds out what this kernel and account allow. The last finding is
// the result of really starting a sandbox and a program in it.
func Diagnose(ctx context.Context) []Finding {
	eng, err := Open(Options{})
	if err != nil {
		return []Finding{failed("engine", err)}
	}
	defer eng.Close()
	var list []Finding
	for _, f := range eng.machines.best.Diagnose() {
		list = append(list, Finding(f))
	}
	return append(list, eng.trial(ctx))
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
	return Finding{What: what, OK: res.Outcome == OutcomeOK,
		Detail: fmt.Sprintf("started, and true ended with %s", res.Outcome)}
}

// failed is a finding made from an error, which names the remedy if there is one.
func failed(what string, err error) Finding { return Finding{What: what, Detail: err.Error()} }
