package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tegmen-dev/tegmen/broker"
)

// Report says what became of a run.
type Report struct {
	Run     string            // its id
	Greeted bool              // the guest has sent hello
	Value   json.RawMessage   // what the run returned; nil if nothing
	Error   *broker.CodeError // how the code failed; nil if it did not, or did not say so
	// Calls lists the calls in the order in which they ended: at most 10,000, of which
	// at most 1,000 refused. Arguments and values are kept up to Limits.Frame bytes in
	// total and are nil beyond that; error texts are cut at 4 KiB.
	Calls    []broker.Record
	Accepted int                         // calls that were let through
	Tools    map[string]broker.ToolUsage // of these, by full name
	Exceeded bool                        // a call was refused because of Limits.Calls
}

// A guest decides how many calls it makes and how long they are, so records are bounded.
const (
	maxListed    = 10_000
	maxRefused   = 1_000   // listed
	maxRefusals  = 10_000  // answered, as each is a line in the host's log; then the link hangs up
	maxErrorText = 4 << 10 // bytes
)

// record adds a call to the report.
func (r *Run) record(c *call, rec broker.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.calls, string(c.id)); len(r.calls) == 0 {
		r.recorded.Broadcast()
	}
	if c.accepted {
		u := r.report.Tools[c.FullName()]
		u.Calls++
		u.Time += rec.Duration
		if rec.Code != 0 {
			u.Failed++
		}
		r.report.Tools[c.FullName()] = u
	} else if r.refused++; r.refused > maxRefused {
		return
	}
	if len(r.report.Calls) == maxListed {
		return
	}
	rec.Arguments, rec.Value = r.keep(rec.Arguments), r.keep(rec.Value)
	rec.Error, rec.Panic = clip(rec.Error), clip(rec.Panic)
	r.report.Calls = append(r.report.Calls, rec)
}

// refusals returns how many calls of the run were refused.
func (r *Run) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// clip shortens an error text, which may contain all that a guest passed.
func clip(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + "…" // a copy
}

// keep returns a copy, since j may be a part of a longer line, or nil if the report is
// full. r.mu is held.
func (r *Run) keep(j json.RawMessage) json.RawMessage {
	if r.kept+len(j) > r.link.limits.Frame {
		return nil
	}
	r.kept += len(j)
	return bytes.Clone(j)
}
