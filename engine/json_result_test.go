package engine

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"testing/quick"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// fullResult is a Result with everything that its JSON has.
func fullResult() Result {
	return Result{
		Outcome: OutcomeSignal, ExitCode: 143, Signal: syscall.SIGTERM,
		Stdout: []byte("ä<&>\n"), Stderr: []byte("a\xffb"),
		Streams: Streams{TruncatedStdout: true, TruncatedStderr: true, Detached: true},
		Code: CodeResult{
			Run: "r1", Value: json.RawMessage(`{"a":[1,"<"]}`),
			Error: &broker.CodeError{Type: "ValueError", Message: "no", Traceback: "line 1"},
			ToolCalls: []broker.Record{
				{Call: broker.Call{Run: "r1", ID: "c1", Name: "add"}, Duration: time.Second,
					Code: broker.CodeNotFound, Error: "no tool"},
				{Call: broker.Call{Run: "r1", ID: "c2", Name: "add"}, Code: -5, Error: "odd"},
				{Call: broker.Call{Run: "r1", ID: "c3", Namespace: "files", Name: "read", Arguments: json.RawMessage(`{"p":1}`)},
					Duration: 1500 * time.Microsecond},
			},
			Tools: map[string]broker.ToolUsage{"files.read": {Calls: 2, Failed: 1, Time: 3 * time.Second}},
		},
		Usage: Usage{
			Wall: 1234567890, User: 1, System: 999_999_999, MaxRSS: 8 * MiB,
			By: ByCgroup, CPU: time.Minute, Memory: GiB, Pids: 7, Read: 4096, Written: 8192,
		},
		Events:  []Event{{Limit: LimitMemory, Count: 2, Detail: "memory.events.local: oom 1"}},
		Refused: []Refusal{{Call: "mount", Action: "EPERM", Count: 3}},
		Held:    []Held{{Path: "/w/.npmrc", Name: ".npmrc", Why: "which package managers execute", Action: HeldStays}},
		Start: StartInfo{
			At: time.Date(2025, 2, 3, 4, 5, 6, 789_000_000, time.UTC), Level: LevelNamespaces,
			Dropped: []Dropped{{Protection: ProtectCPUs, Reason: "limiting cpus takes a cgroup"}},
		},
	}
}

func TestResultJSONGolden(t *testing.T) {
	testenv.Golden(t, filepath.Join("testdata", "json", "result_full.json"), indented(t, fullResult()), *update)
}

func TestResultJSONRoundTrip(t *testing.T) {
	want := fullResult()
	text, err := want.MarshalJSON() // json.Marshal would write \u003c in the value
	if err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	same := func(out, errs []byte, u Usage, events []Event, refused []Refusal, s Streams) bool {
		r := Result{Outcome: OutcomeOK, Stdout: out, Stderr: errs, Usage: u, Events: events, Refused: refused, Streams: s}
		text, err := json.Marshal(r)
		if err != nil {
			return false
		}
		var read Result
		if err := json.Unmarshal(text, &read); err != nil {
			return false
		}
		again, err := json.Marshal(read)
		return err == nil && string(again) == string(text) && read.Usage == u && read.Streams == s
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
}

// Every field of a Result is in its JSON, or here, so that a new one is not forgotten.
func TestResultJSONHasEveryField(t *testing.T) {
	r := fullResult()
	missing := map[string]bool{ // what MarshalJSON documents, and what a run repeats
		"Start.Timing": true, "Code.ToolCalls.Started": true, "Code.ToolCalls.Panic": true,
		"Code.ToolCalls.Bytes": true, "Code.ToolCalls.Value": true,
	}
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		if missing[path] {
			return
		}
		switch {
		case v.Type() == reflect.TypeFor[time.Time]():
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				f := v.Type().Field(i)
				name := path + "." + f.Name
				if path == "" {
					name = f.Name
				} else if f.Anonymous {
					name = path
				}
				visit(name, v.Field(i))
			}
			return
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && v.Len() > 0:
			set := reflect.New(v.Type().Elem()).Elem() // a field counts if one element has it
			for i := range v.Len() {
				for j := range set.NumField() {
					if !v.Index(i).Field(j).IsZero() {
						set.Field(j).Set(v.Index(i).Field(j))
					}
				}
			}
			visit(path, set)
			return
		}
		if v.IsZero() {
			t.Errorf("fullResult does not set %s", path)
		}
	}
	visit("", reflect.ValueOf(r))
}

func TestResultJSONOfLaterVersions(t *testing.T) {
	var r Result
	err := json.Unmarshal([]byte(`{"outcome": "new", "exit_code": 192, "signal": "a new signal", "news": {}, "level": "x",
		"started": "2025-02-03T04:05:06.789Z", "tool_calls": [{"name": "a", "code": "a_new_code", "seconds": 1e-07}]}`), &r)
	if err != nil || r.Signal != 64 || r.Code.ToolCalls[0].Code != broker.CodeTool || r.Code.ToolCalls[0].Duration != 100 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{"{}", "[]", `{"started": "2025-02-03T04:05:06.789Z", "usage": {"wall_seconds": "1"}}`} {
		if err := json.Unmarshal([]byte(bad), &r); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
