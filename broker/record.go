package broker

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
)

// record puts a call into the report, within bounds: a guest decides how many
// there are, and how long what they pass is.
func (r *Run) record(c *call, rec Record) {
	const maxRefused, maxListed = 1000, 10_000
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.calls, string(c.id)); len(r.calls) == 0 {
		r.settled.Broadcast()
	}
	if c.accepted {
		u := r.report.Tools[c.tool.fullName()]
		u.Calls++
		u.Time += rec.Duration
		if rec.Code != 0 {
			u.Failed++
		}
		r.report.Tools[c.tool.fullName()] = u
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

// maxRefusals is how many calls a run may ask for in vain: each is a line in the
// host's log. Who goes on is not listened to any more.
const maxRefusals = 10_000

func (r *Run) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// clip is the begin of an error's text, which may have all that a guest passed.
func clip(text string) string {
	const most = 4 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…" // a copy
}

// keep returns a copy, as what it stands in may be longer, or nil when the report
// has enough. Called with r.mu held.
func (r *Run) keep(j json.RawMessage) json.RawMessage {
	if r.kept+len(j) > r.link.limits.Frame {
		return nil
	}
	r.kept += len(j)
	return bytes.Clone(j)
}

// tell reports the call to whom the host wants it reported.
func (c *call) tell(rec Record) {
	set := c.run.catalog.set
	if set.Log != nil {
		attrs := []slog.Attr{
			slog.String("run", c.Run), slog.String("call", c.ID), slog.String("tool", qualified(c.Namespace, c.Name)),
			slog.Duration("duration", rec.Duration), slog.Int("bytes", rec.Bytes),
		}
		if rec.Code != 0 {
			attrs = append(attrs, slog.String("refused", rec.Code.String()), slog.String("error", clip(rec.Error)))
		}
		set.Log.LogAttrs(c.run.ctx, slog.LevelInfo, "tool call", attrs...)
	}
	if set.Audit != nil {
		defer c.recovered("the audit hook", new(*Error))
		set.Audit(rec)
	}
}
