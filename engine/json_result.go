package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/broker"
)

// resultJSON is a Result for programs: times in seconds, output as text. Output that is
// not UTF-8 is base64.
type resultJSON struct {
	Outcome         Outcome       `json:"outcome"`
	ExitCode        int           `json:"exit_code"`
	Signal          string        `json:"signal,omitempty"`
	Stdout          *string       `json:"stdout,omitempty"`
	StdoutBase64    []byte        `json:"stdout_base64,omitempty"`
	Stderr          *string       `json:"stderr,omitempty"`
	StderrBase64    []byte        `json:"stderr_base64,omitempty"`
	TruncatedStdout bool          `json:"truncated_stdout,omitempty"`
	TruncatedStderr bool          `json:"truncated_stderr,omitempty"`
	Detached        bool          `json:"detached,omitempty"`
	Usage           usageJSON     `json:"usage"`
	Events          []eventJSON   `json:"events,omitempty"`
	Started         string        `json:"started"`
	Level           Level         `json:"level"`
	Dropped         []droppedJSON `json:"dropped,omitempty"`
	Refused         []refusalJSON `json:"refused,omitempty"`
	Held            []heldJSON    `json:"held,omitempty"`

	// Of code.
	Run       string                   `json:"run,omitempty"`
	Value     json.RawMessage          `json:"value,omitempty"`
	Error     *broker.CodeError        `json:"error,omitempty"`
	ToolCalls []callJSON               `json:"tool_calls,omitempty"`
	Tools     map[string]toolUsageJSON `json:"tools,omitempty"`
}

type usageJSON struct {
	Wall   jsonSeconds `json:"wall_seconds"`
	User   jsonSeconds `json:"user_seconds"`
	System jsonSeconds `json:"system_seconds"`
	MaxRSS int64       `json:"max_rss_bytes"`

	// Of the whole sandbox.
	By      EnforcerKind `json:"by,omitempty"`
	CPU     jsonSeconds  `json:"cpu_seconds,omitempty"`
	Memory  int64        `json:"memory_peak_bytes,omitempty"`
	Pids    int          `json:"pids_peak,omitempty"`
	Read    int64        `json:"read_bytes,omitempty"`
	Written int64        `json:"written_bytes,omitempty"`
}

type eventJSON struct {
	Limit  LimitName `json:"limit"`
	Count  int64     `json:"count"`
	Detail string    `json:"detail"`
}

type droppedJSON struct {
	Protection Protection `json:"protection"`
	Reason     string     `json:"reason"`
}

type heldJSON struct {
	Path   string     `json:"path"`
	Name   string     `json:"name"`
	Why    string     `json:"why"`
	Action HeldAction `json:"action"`
}

type refusalJSON struct {
	Call   string `json:"call"`
	Action string `json:"action"`
	Count  int    `json:"count"`
}

// callJSON is a call of a tool. Code and Error are what the guest received if it failed.
type callJSON struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"` // with its namespace
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Duration  jsonSeconds     `json:"seconds"`
	Code      string          `json:"code,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// toolUsageJSON sums up the calls of one tool.
type toolUsageJSON struct {
	Calls  int         `json:"calls"`
	Failed int         `json:"failed"`
	Time   jsonSeconds `json:"seconds"`
}

// jsonSeconds is a time as a number of seconds.
type jsonSeconds time.Duration

// MarshalJSON writes a decimal number, exactly.
func (s jsonSeconds) MarshalJSON() ([]byte, error) { return []byte(seconds(time.Duration(s))), nil }

// UnmarshalJSON reads any number.
func (s *jsonSeconds) UnmarshalJSON(text []byte) error {
	d, err := parseSeconds(string(text))
	*s = jsonSeconds(d)
	return err
}

// startedLayout is RFC 3339 with milliseconds, in UTC.
const startedLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes what tegmen run --json prints, which docs/schema/result.schema.json
// describes. It leaves out Start.Timing and, of calls of tools, what the guest received.
func (r Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{
		Outcome: r.Outcome, ExitCode: r.ExitCode,
		TruncatedStdout: r.Streams.TruncatedStdout, TruncatedStderr: r.Streams.TruncatedStderr, Detached: r.Streams.Detached,
		Usage: usageJSON{
			Wall: jsonSeconds(r.Usage.Wall), User: jsonSeconds(r.Usage.User), System: jsonSeconds(r.Usage.System),
			MaxRSS: int64(r.Usage.MaxRSS), By: r.Usage.By, CPU: jsonSeconds(r.Usage.CPU), Memory: int64(r.Usage.Memory),
			Pids: r.Usage.Pids, Read: int64(r.Usage.Read), Written: int64(r.Usage.Written),
		},
		Level: r.Start.Level, Started: r.Start.At.UTC().Format(startedLayout),
		Run: r.Code.Run, Value: r.Code.Value, Error: r.Code.Error, Tools: make(map[string]toolUsageJSON),
	}
	if r.Signal != 0 {
		j.Signal = r.Signal.String()
	}
	j.Stdout, j.StdoutBase64 = outputJSON(r.Stdout)
	j.Stderr, j.StderrBase64 = outputJSON(r.Stderr)
	for _, e := range r.Events {
		j.Events = append(j.Events, eventJSON(e))
	}
	for _, d := range r.Start.Dropped {
		j.Dropped = append(j.Dropped, droppedJSON(d))
	}
	for _, call := range r.Refused {
		j.Refused = append(j.Refused, refusalJSON(call))
	}
	for _, h := range r.Held {
		j.Held = append(j.Held, heldJSON(h))
	}
	for _, c := range r.Code.ToolCalls {
		j.ToolCalls = append(j.ToolCalls, callOf(c))
	}
	for name, u := range r.Code.Tools {
		j.Tools[name] = toolUsageJSON{u.Calls, u.Failed, jsonSeconds(u.Time)}
	}
	return writeAny(nil, j)
}

// UnmarshalJSON replaces the Result by what MarshalJSON has written. It ignores fields
// that it does not know, since commands add their own.
func (r *Result) UnmarshalJSON(text []byte) error {
	var j resultJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	at, err := time.Parse(startedLayout, j.Started)
	if err != nil {
		return err
	}
	u := j.Usage
	read := Result{
		Outcome: j.Outcome, ExitCode: j.ExitCode,
		Stdout: j.StdoutBase64, Stderr: j.StderrBase64,
		Streams: Streams{TruncatedStdout: j.TruncatedStdout, TruncatedStderr: j.TruncatedStderr, Detached: j.Detached},
		Usage: Usage{
			Wall: time.Duration(u.Wall), User: time.Duration(u.User), System: time.Duration(u.System), MaxRSS: Bytes(u.MaxRSS),
			By: u.By, CPU: time.Duration(u.CPU), Memory: Bytes(u.Memory),
			Pids: u.Pids, Read: Bytes(u.Read), Written: Bytes(u.Written),
		},
		Start: StartInfo{At: at, Level: j.Level},
		Code:  CodeResult{Run: j.Run, Value: j.Value, Error: j.Error},
	}
	if j.Signal != "" {
		read.Signal = signalOf(j.Signal, j.ExitCode)
	}
	if j.Stdout != nil {
		read.Stdout = []byte(*j.Stdout)
	}
	if j.Stderr != nil {
		read.Stderr = []byte(*j.Stderr)
	}
	for _, e := range j.Events {
		read.Events = append(read.Events, Event(e))
	}
	for _, d := range j.Dropped {
		read.Start.Dropped = append(read.Start.Dropped, Dropped(d))
	}
	for _, call := range j.Refused {
		read.Refused = append(read.Refused, Refusal(call))
	}
	for _, h := range j.Held {
		read.Held = append(read.Held, Held(h))
	}
	read.Code.addTools(j)
	*r = read
	return nil
}

func callOf(r broker.Record) callJSON {
	c := callJSON{ID: r.ID, Name: r.FullName(), Arguments: r.Arguments, Duration: jsonSeconds(r.Duration), Error: r.Error}
	if r.Code != 0 {
		c.Code = r.Code.String()
	}
	return c
}

// addTools adds what was read about calls of tools.
func (c *CodeResult) addTools(j resultJSON) {
	for _, call := range j.ToolCalls {
		r := broker.Record{
			Call:     broker.Call{Run: j.Run, ID: call.ID, Name: call.Name, Arguments: call.Arguments},
			Duration: time.Duration(call.Duration), Code: codeNamed(call.Code), Error: call.Error,
		}
		if namespace, name, ok := strings.Cut(call.Name, "."); ok {
			r.Namespace, r.Name = namespace, name
		}
		c.ToolCalls = append(c.ToolCalls, r)
	}
	if len(j.Tools) > 0 {
		c.Tools = make(map[string]broker.ToolUsage, len(j.Tools))
	}
	for name, u := range j.Tools {
		c.Tools[name] = broker.ToolUsage{Calls: u.Calls, Failed: u.Failed, Time: time.Duration(u.Time)}
	}
}

// codeNamed is the code whose String is name; 0 if name is "".
func codeNamed(name string) broker.Code {
	if name == "" {
		return 0
	}
	for code := broker.CodeParse; code <= broker.CodeTool; code++ { // the range that JSON-RPC reserves
		if code.String() == name {
			return code
		}
	}
	var code broker.Code
	if _, err := fmt.Sscanf(name, "code %d", &code); err != nil {
		return broker.CodeTool // of a later version
	}
	return code
}

// signalOf is the signal that a system calls name; systems differ in a few.
func signalOf(name string, exitCode int) syscall.Signal {
	for s := syscall.Signal(1); s < 128; s++ {
		if s.String() == name {
			return s
		}
	}
	return syscall.Signal(exitCode - 128)
}

// outputJSON is output as text, or as it is if it is not UTF-8.
func outputJSON(b []byte) (*string, []byte) {
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}
