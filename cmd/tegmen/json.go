package main

import (
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
)

// jsonResult is a Result for programs: times in seconds, output as text. Output that is
// not UTF-8 is base64.
type jsonResult struct {
	Outcome         engine.Outcome `json:"outcome"`
	ExitCode        int            `json:"exit_code"`
	Signal          string         `json:"signal,omitempty"`
	Stdout          *string        `json:"stdout,omitempty"`
	StdoutBase64    []byte         `json:"stdout_base64,omitempty"`
	Stderr          *string        `json:"stderr,omitempty"`
	StderrBase64    []byte         `json:"stderr_base64,omitempty"`
	TruncatedStdout bool           `json:"truncated_stdout,omitempty"`
	TruncatedStderr bool           `json:"truncated_stderr,omitempty"`
	Usage           jsonUsage      `json:"usage"`
	Events          []jsonEvent    `json:"events,omitempty"`
	Started         string         `json:"started"`
	Level           engine.Level   `json:"level"`
	Dropped         []jsonDropped  `json:"dropped,omitempty"`
	Refused         []jsonRefused  `json:"refused,omitempty"`

	// Of a workspace with an overlay.
	Changes   *[]jsonChange `json:"changes,omitempty"`
	Committed *bool         `json:"committed,omitempty"`

	// Of code.
	Run       string               `json:"run,omitempty"`
	Value     json.RawMessage      `json:"value,omitempty"`
	Error     *broker.CodeError    `json:"error,omitempty"`
	ToolCalls []jsonCall           `json:"tool_calls,omitempty"`
	Tools     map[string]jsonTools `json:"tools,omitempty"`
}

// jsonCall is a call of a tool. Code and error are what the guest got if it failed.
type jsonCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Duration  float64         `json:"seconds"`
	Code      string          `json:"code,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// jsonTools sums up the calls of one tool.
type jsonTools struct {
	Calls  int     `json:"calls"`
	Failed int     `json:"failed"`
	Time   float64 `json:"seconds"`
}

type jsonUsage struct {
	Wall   float64 `json:"wall_seconds"`
	User   float64 `json:"user_seconds"`
	System float64 `json:"system_seconds"`
	MaxRSS int64   `json:"max_rss_bytes"`

	// Of the whole sandbox.
	By      string  `json:"by,omitempty"`
	CPU     float64 `json:"cpu_seconds,omitempty"`
	Memory  int64   `json:"memory_peak_bytes,omitempty"`
	Pids    int     `json:"pids_peak,omitempty"`
	Read    int64   `json:"read_bytes,omitempty"`
	Written int64   `json:"written_bytes,omitempty"`
}

type jsonEvent struct {
	Limit  string `json:"limit"`
	Count  int64  `json:"count"`
	Detail string `json:"detail"`
}

type jsonDropped struct {
	Protection engine.Protection `json:"protection"`
	Reason     string            `json:"reason"`
}

type jsonRefused struct {
	Call   string `json:"call"`
	Action string `json:"action"`
	Count  int    `json:"count"`
}

func (o *options) printJSON(w io.Writer, r *engine.Result) error {
	j := jsonResult{
		Outcome: r.Outcome, ExitCode: r.ExitCode,
		TruncatedStdout: r.Streams.TruncatedStdout, TruncatedStderr: r.Streams.TruncatedStderr,
		Usage: jsonUsage{
			r.Usage.Wall.Seconds(), r.Usage.User.Seconds(), r.Usage.System.Seconds(), int64(r.Usage.MaxRSS),
			string(r.Usage.By), r.Usage.CPU.Seconds(), int64(r.Usage.Memory), r.Usage.Pids,
			int64(r.Usage.Read), int64(r.Usage.Written),
		},
		Level:   r.Start.Level,
		Started: r.Start.At.UTC().Format("2006-01-02T15:04:05.000Z"),
		Run:     r.Code.Run, Value: r.Code.Value, Error: r.Code.Error, Tools: make(map[string]jsonTools),
	}
	if r.Signal != 0 {
		j.Signal = r.Signal.String()
	}
	j.Stdout, j.StdoutBase64 = text(r.Stdout)
	j.Stderr, j.StderrBase64 = text(r.Stderr)
	for _, e := range r.Events {
		j.Events = append(j.Events, jsonEvent{string(e.Limit), e.Count, e.Detail})
	}
	for _, d := range r.Start.Dropped {
		j.Dropped = append(j.Dropped, jsonDropped(d))
	}
	for _, call := range r.Refused {
		j.Refused = append(j.Refused, jsonRefused(call))
	}
	for _, c := range r.Code.ToolCalls {
		j.ToolCalls = append(j.ToolCalls, jsonCallOf(c))
	}
	for name, u := range r.Code.Tools {
		j.Tools[name] = jsonTools{u.Calls, u.Failed, u.Time.Seconds()}
	}
	o.overlay.addTo(&j, o.commit)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(j)
}

func jsonCallOf(r broker.Record) jsonCall {
	c := jsonCall{ID: r.ID, Name: r.Name, Arguments: r.Arguments, Duration: r.Duration.Seconds(), Error: r.Error}
	if r.Namespace != "" {
		c.Name = r.Namespace + "." + r.Name
	}
	if r.Code != 0 {
		c.Code = r.Code.String()
	}
	return c
}

func text(b []byte) (*string, []byte) {
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}
