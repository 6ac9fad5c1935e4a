package bootstrap_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/bootstrap"
)

// pythonHost plays the host for one python3 of our own, without the engine and
// without the broker, so that it can do what those never would.
type pythonHost struct {
	t       *testing.T
	conn    *os.File
	process *os.Process
	dir     string // the code's
	job     map[string]any
	later   []map[string]any // what a stateful guest is given next
	meeting []pythonMessage  // calls of meet that wait for the others
	cancels int
	results []string
}

type pythonMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name, Namespace string
		Token           string
		Arguments       map[string]any
		Value           json.RawMessage
		Error           map[string]any
	} `json:"params"`
	Raw json.RawMessage `json:"-"`
}

func (h *pythonHost) send(format string, args ...any) {
	fmt.Fprintf(h.conn, `{"jsonrpc":"2.0",`+format+"}\n", args...) // the guest may have gone
}

func (h *pythonHost) value(m pythonMessage, v any) {
	h.send(`"id":%s,"result":{"value":%s}`, m.ID, toJSON(h.t, v))
}

func toJSON(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func (h *pythonHost) serve() {
	defer h.conn.Close()
	lines := bufio.NewReaderSize(h.conn, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m pythonMessage
		if err := json.Unmarshal(line, &m); err != nil {
			h.t.Errorf("guest sent %.200q: %v", line, err)
			return
		}
		switch m.Method {
		case "hello":
			if m.Params.Token != "secret" {
				h.t.Errorf("token %q", m.Params.Token)
			}
			h.send(`"id":%s,"result":%s`, m.ID, toJSON(h.t, h.job))
		case "tools/call":
			if !h.call(m) {
				return
			}
		case "cancel":
			h.cancels++
		case "result":
			if !h.result(m, line) {
				return
			}
		}
	}
}

// result answers a result, and gives the guest its next job.
func (h *pythonHost) result(m pythonMessage, line []byte) bool {
	var r struct {
		Params struct {
			Run   string          `json:"run,omitempty"`
			Value json.RawMessage `json:"value,omitempty"`
			Error *struct {
				Type      string `json:"type"`
				Message   string `json:"message"`
				Traceback string `json:"traceback,omitempty"`
			} `json:"error,omitempty"`
		}
	}
	if err := json.Unmarshal(line, &r); err != nil {
		h.t.Error(err)
	}
	if r.Params.Run != h.job["run"] {
		h.t.Errorf("result of run %q", r.Params.Run)
	}
	if strings.Contains(string(r.Params.Value), "refuse me") {
		h.send(`"id":%s,"error":{"code":-32700,"message":"no such result","data":{"type":"parse_error"}}`, m.ID)
		return true
	}
	r.Params.Run = ""
	if r.Params.Error != nil {
		r.Params.Error.Traceback = ""
	}
	h.results = append(h.results, toJSON(h.t, r.Params))
	h.send(`"id":%s,"result":{}`, m.ID)
	if h.job["stateful"] == true {
		if len(h.later) == 0 {
			return false
		}
		for k, v := range h.later[0] {
			h.job[k] = v
		}
		h.later = h.later[1:]
		h.send(`"method":"run","params":%s`, toJSON(h.t, h.job))
	}
	return true
}

func (h *pythonHost) call(m pythonMessage) bool {
	args := m.Params.Arguments
	switch m.Params.Name {
	case "add":
		h.value(m, args["a"].(float64)+args["b"].(float64))
	case "echo":
		h.value(m, args["v"])
	case "query", "select", "class":
		h.value(m, m.Params.Namespace+"."+m.Params.Name+":"+toJSON(h.t, args))
	case "with-dash", "not a name":
		h.value(m, m.Params.Name)
	case "length":
		h.value(m, len(args["v"].(string)))
	case "big":
		h.value(m, strings.Repeat("x", int(args["n"].(float64))))
	case "blob":
		h.value(m, []byte("hi\x00"))
	case "fail":
		h.send(`"id":%s,"error":{"code":-32000,"message":"it broke","data":{"type":"oops","details":{"x":1}}}`, m.ID)
	case "steps":
		for i := range 3 {
			h.send(`"method":"progress","params":{"id":%s,"value":%d}`, m.ID, i)
		}
		h.value(m, "done")
	case "meet": // all n of them at once, or none
		h.meeting = append(h.meeting, m)
		n, ok := args["n"].(float64)
		if !ok {
			n = 2
		}
		if len(h.meeting) == int(n) {
			for i := len(h.meeting) - 1; i >= 0; i-- {
				h.value(h.meeting[i], h.meeting[i].Params.Arguments["who"])
			}
			h.meeting = nil
		}
	case "pause": // nothing is read until the code has made a file
		until(h.t, func() bool {
			_, err := os.Stat(filepath.Join(h.dir, "alive"))
			return err == nil
		})
		h.value(m, true)
	case "never":
	case "cancels":
		h.value(m, h.cancels)
	case "interrupt": // answered too, as a signal just before read is seen when read returns
		if err := h.process.Signal(syscall.SIGINT); err != nil {
			h.t.Error(err)
		}
		h.value(m, nil)
	case "over":
		h.send(`"method":"cancel","params":{}`)
	case "unread":
		h.send(`"id":null,"error":{"code":-32700,"message":"nested too deeply","data":{"type":"parse_error"}}`)
	case "hang_up":
		return false
	}
	return true
}

var pythonTools = json.RawMessage(`[
	{"name":"add","description":"Adds two numbers.","schema":{"type":"object","properties":{"a":{"type":"integer","description":"the first"},"b":{"type":"integer"}},"required":["a","b"]},"output":{"type":"integer"}},
	{"name":"echo","schema":{"type":"object","properties":{"v":{}},"required":["v"]}},
	{"name":"length","schema":{"type":"object","properties":{"v":{"type":"string"}}}},
	{"name":"big","schema":{"type":"object","properties":{"n":{"type":"integer"}}}},
	{"name":"meet","schema":{"type":"object","properties":{"who":{},"n":{"type":"integer","default":2}},"required":["who"]}},
	{"name":"blob","schema":{"type":"object"},"output":{"type":["string","null"],"contentEncoding":"base64"}},
	{"name":"query","namespace":"db","schema":{"type":"object","properties":{"q":{"type":"string"}}}},
	{"name":"query","namespace":"web","schema":{"type":"object","properties":{"q":{"type":"string"}}}},
	{"name":"select","namespace":"db","schema":{"type":"object"}},
	{"name":"with-dash","schema":{"type":"object"}}, {"name":"not a name","schema":{"type":"object"}},
	{"name":"class","schema":{"type":"object"}},
	{"name":"fail","schema":{"type":"object"}}, {"name":"steps","schema":{"type":"object"}},
	{"name":"never","schema":{"type":"object"}}, {"name":"cancels","schema":{"type":"object"}},
	{"name":"interrupt","schema":{"type":"object"}}, {"name":"over","schema":{"type":"object"}},
	{"name":"unread","schema":{"type":"object"}}, {"name":"pause","schema":{"type":"object"}}, {"name":"hang_up","schema":{"type":"object"}}]`)

// pythonCase is a dialogue and what is to come of it.
type pythonCase struct {
	name   string
	code   string
	job    map[string]any   // besides the code
	later  []map[string]any // the next jobs of a stateful guest
	args   []string
	env    []string
	stdin  string
	result []string // the parameters of each result, without traceback
	stdout string
	stderr []string // in it, in that order; none: empty
	exit   int      // negative: by that signal
	deaf   bool     // to MSG_DONTWAIT, as the kernel of macOS is when it sends
}

func (c pythonCase) run(t *testing.T, python string) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	h := &pythonHost{t: t, conn: os.NewFile(uintptr(fds[0]), "host"), later: c.later, job: map[string]any{
		"protocol": 1, "run": "r-1", "tools": pythonTools, "limits": map[string]any{"frame": 8 << 20}, "language": "python", "code": c.code}}
	for k, v := range c.job {
		h.job[k] = v
	}
	theirs := os.NewFile(uintptr(fds[1]), "guest")
	defer theirs.Close()
	launch := bootstrap.Python(c.args)
	if !launch.Hello || launch.Argv[0] != "python3" {
		t.Fatalf("launch %q", launch.Argv[0])
	}
	if c.deaf {
		boot := &launch.Argv[3]
		for _, change := range []string{`sys.platform == \"linux\"`, "_socket.MSG_DONTWAIT,"} {
			if !strings.Contains(*boot, change) {
				t.Fatalf("no %q in the guest", change)
			}
		}
		*boot = strings.NewReplacer(`sys.platform == \"linux\"`, "False", "_socket.MSG_DONTWAIT,", "0,").Replace(*boot)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, launch.Argv[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TEGMEN_FD=3", "TEGMEN_TOKEN=secret", "LANG=C.UTF-8"}, append(launch.Env, c.env...)...)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdin = strings.NewReader(c.stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	h.process, h.dir = cmd.Process, cmd.Dir
	done := make(chan struct{})
	go func() { defer close(done); h.serve() }()
	cmd.Wait() // the exit code tells
	<-done
	if got, want := strings.Join(h.results, "\n"), strings.Join(c.result, "\n"); got != want {
		t.Errorf("results\n%s\nwant\n%s", got, want)
	}
	if stdout.String() != c.stdout {
		t.Errorf("stdout %q, want %q", stdout.String(), c.stdout)
	}
	code := cmd.ProcessState.ExitCode()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		code = -int(s.Signal())
	}
	if code != c.exit {
		t.Errorf("exit code %d, want %d", code, c.exit)
	}
	rest := stderr.String()
	for _, want := range c.stderr {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("stderr %q has no %q", stderr.String(), want)
		}
		rest = rest[i+len(want):]
	}
	if t.Failed() || len(c.stderr) == 0 && rest != "" {
		t.Errorf("stderr %s", stderr.String())
	}
}
