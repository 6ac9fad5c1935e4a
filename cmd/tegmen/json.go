package main

import (
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/engine"
)

// jsonResult is a Result as a program would want it: times in seconds, output
// as text. Output that is not UTF-8 is given in base64 instead.
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
	Started         string         `json:"started"`
	Dropped         []jsonDropped  `json:"dropped,omitempty"`
}

type jsonUsage struct {
	Wall   float64 `json:"wall_seconds"`
	User   float64 `json:"user_seconds"`
	System float64 `json:"system_seconds"`
	MaxRSS int64   `json:"max_rss_bytes"`
}

type jsonDropped struct {
	Protection engine.Protection `json:"protection"`
	Reason     string            `json:"reason"`
}

func printJSON(w io.Writer, r *engine.Result) error {
	j := jsonResult{
		Outcome: r.Outcome, ExitCode: r.ExitCode,
		TruncatedStdout: r.TruncatedStdout, TruncatedStderr: r.TruncatedStderr,
		Usage:   jsonUsage{r.Usage.Wall.Seconds(), r.Usage.User.Seconds(), r.Usage.System.Seconds(), int64(r.Usage.MaxRSS)},
		Started: r.Started.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	if r.Signal != 0 {
		j.Signal = r.Signal.String()
	}
	j.Stdout, j.StdoutBase64 = text(r.Stdout)
	j.Stderr, j.StderrBase64 = text(r.Stderr)
	for _, d := range r.Dropped {
		j.Dropped = append(j.Dropped, jsonDropped(d))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(j)
}

func text(b []byte) (*string, []byte) {
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}
