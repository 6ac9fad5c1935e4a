package broker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/internal/lines"
)

// Limits bound what a guest may ask for. 0 is the default given with each. A
// guest that does not read has the host keep up to AtOnce answers, each of which
// a tool may make as long as Frame.
type Limits struct {
	Frame     int           // bytes of a line in either direction; default 8 MiB
	Calls     int           // calls of a run that are let through; default 1000
	AtOnce    int           // calls served at once; default 32
	CallTime  time.Duration // of a call; default: as long as its run
	Handshake time.Duration // from the first run's start to hello; default 30 s
}

func (l Limits) withDefaults() Limits {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&l.Frame, 8<<20)
	def(&l.Calls, 1000)
	def(&l.AtOnce, 32)
	if l.Handshake == 0 {
		l.Handshake = 30 * time.Second
	}
	return l
}

// Job is what a guest is given to do.
type Job struct {
	Language string
	Code     string
	Vars     map[string]json.RawMessage // each is JSON
	Args     []string
	Stateful bool // another job may come
	// Brief leaves the tools out of the answer to hello, for a guest that knows
	// them already; tools/list has them.
	Brief bool
}

// ErrClosed is the error where a link has ended.
var ErrClosed = errors.New("link closed")

// Link is the connection to one guest, and has one run at a time. Its methods
// may be called concurrently.
type Link struct {
	conn   io.ReadWriteCloser
	limits Limits
	token  string

	writing sync.Mutex
	reader  reader

	mu        sync.Mutex
	run       *Run // nil: none yet
	greeted   bool
	bad       int // lines that were no request
	lists     int
	ended     chan struct{} // closed when nothing more is read
	handshake *time.Timer
	closing   sync.Once
}

// maxBad is how many lines that are no requests a guest may send: what talks
// nonsense is not listened to for ever.
const maxBad = 100

// NewLink serves a connection, which it owns from now on. Close ends it.
func NewLink(conn io.ReadWriteCloser, l Limits) *Link {
	l = l.withDefaults()
	link := &Link{conn: conn, limits: l, token: randomHex(16), ended: make(chan struct{})}
	link.reader.in, link.reader.wake = lines.Reader{From: conn, Limit: l.Frame}, make(chan struct{}, 1)
	return link
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: the documentation says so
	return hex.EncodeToString(b)
}

// Token is what the guest has to say in its hello: 32 hexadecimal digits.
func (l *Link) Token() string { return l.token }

// Done is closed when nothing more comes from the guest.
func (l *Link) Done() <-chan struct{} { return l.ended }

// Start begins a run, with the tools of a set; nil is none. The first one is
// what a guest's hello is answered with, and later ones are sent to it. The run
// before has been ended. ctx is handed to tools, and ends the run when it is
// done.
func (l *Link) Start(ctx context.Context, s *Set, j Job) (*Run, error) {
	if s != nil {
		if err := s.Err(); err != nil {
			return nil, err
		}
	}
	r := newRun(ctx, l, newCatalog(s), j)
	hello, err := json.Marshal(r.info())
	if err != nil {
		return nil, err
	}
	if len(hello)+128 > l.limits.Frame {
		return nil, refuse(CodeTooLarge, "the code and its variables take %d bytes, more than a frame's %d", len(hello), l.limits.Frame)
	}
	r.hello = hello
	l.mu.Lock()
	first := l.run == nil
	l.run = r
	greeted := l.greeted
	l.mu.Unlock()
	if first {
		l.handshake = time.AfterFunc(l.limits.Handshake, l.late)
		go l.serve()
		go l.watch()
		return r, nil
	}
	if !greeted {
		return nil, ErrClosed
	}
	if err := l.send(encode(notification{Version: "2.0", Method: "run", Params: json.RawMessage(hello)})); err != nil {
		return nil, errors.Join(ErrClosed, err)
	}
	return r, nil
}

// late hangs up on a guest that has not said hello in time.
func (l *Link) late() {
	l.mu.Lock()
	greeted := l.greeted
	l.mu.Unlock()
	if !greeted {
		_ = l.Close()
	}
}

// Close hangs up. What is being read or written ends, and so does the run.
func (l *Link) Close() error {
	err := l.hangUp()
	if run := l.current(); run != nil {
		run.over() // which the reader may be waiting for
		<-l.ended
	}
	return err
}

func (l *Link) hangUp() (err error) {
	l.closing.Do(func() { err = l.conn.Close() })
	return err
}

func (l *Link) current() *Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

// request is a line from a guest, with the parameters of every method, so that
// it is parsed once. Its parts stand in the memory of the line.
type request struct {
	Version string  `json:"jsonrpc"`
	ID      part    `json:"id"`
	Method  *string `json:"method"`
	Params  *params `json:"params"`
}

type params struct {
	Protocol, Token            part // hello
	Name, Namespace, Arguments part // tools/call
	Progress                   part
	ID                         part // cancel
	Run, Value, Error          part // result
}

// part is JSON inside a line that is ours to keep, so it need not be copied.
type part []byte

// UnmarshalJSON keeps what it is given, of a line that is nobody else's.
func (p *part) UnmarshalJSON(b []byte) error { *p = b; return nil }

// handle serves one line, and tells whether to go on. A call is left to be
// served.
func (l *Link) handle(line []byte) (c *call, more bool) {
	var req request
	if !utf8.Valid(line) {
		return nil, l.refuse(nil, refuse(CodeParse, "not UTF-8"))
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	err := json.Unmarshal(line, &req)
	switch {
	case errors.As(err, &syntax):
		return nil, l.refuse(nil, refuse(CodeParse, "%v", err))
	case errors.As(err, &kind) && kind.Field == "params":
		req.Params = nil // refused by each method
	case err != nil:
		return nil, l.refuse(req.id(), refuse(CodeInvalidRequest, "%v", err))
	}
	switch {
	case req.Version != "2.0":
		return nil, l.refuse(req.id(), refuse(CodeInvalidRequest, `jsonrpc is not "2.0"`))
	case req.Method == nil:
		return nil, l.refuse(req.id(), refuse(CodeInvalidRequest, "no method"))
	case *req.Method == "cancel" && req.ID == nil:
		return nil, l.cancel(req.Params)
	case req.id() == nil:
		return nil, l.refuse(nil, refuse(CodeInvalidRequest, "%.64s: an id is a number or a string of at most %d bytes", *req.Method, maxID))
	}
	l.mu.Lock()
	greeted, run := l.greeted, l.run
	l.mu.Unlock()
	if !greeted {
		return nil, l.hello(run, &req)
	}
	switch *req.Method {
	case "hello":
		return nil, l.refuse(req.id(), refuse(CodeInvalidRequest, "hello, again"))
	case "tools/list":
		return nil, l.list(run, &req)
	case "tools/call", "result":
		if req.Params == nil {
			return nil, l.refuse(req.id(), refuse(CodeParams, "params have to be an object"))
		}
		if *req.Method == "result" {
			return nil, run.result(req.id(), req.Params)
		}
		return run.call(req.id(), req.Params, len(line))
	}
	return nil, l.refuse(req.id(), refuse(CodeMethod, "unknown method: %.64s", *req.Method))
}

const maxID = 64

// id is the request's, as it was sent; nil when it has none that may be one.
func (r *request) id() json.RawMessage {
	if len(r.ID) == 0 || len(r.ID) > maxID || (r.ID[0] != '"' && r.ID[0] != '-' && (r.ID[0] < '0' || r.ID[0] > '9')) {
		return nil
	}
	return json.RawMessage(r.ID)
}

// refuse answers what is no request. It tells whether to go on listening.
func (l *Link) refuse(id json.RawMessage, e *Error) bool {
	l.mu.Lock()
	l.bad++
	enough := l.bad > maxBad
	l.mu.Unlock()
	return l.answer(id, nil, e) && !enough
}

// hello is the first thing that a guest says. One that says anything else, or
// has not the token, is not spoken to again.
func (l *Link) hello(run *Run, req *request) bool {
	if *req.Method != "hello" {
		l.answer(req.id(), nil, refuse(CodeUnauthorized, "say hello first"))
		return false
	}
	var token string
	if req.Params == nil || json.Unmarshal(req.Params.Token, &token) != nil ||
		subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) != 1 {
		l.answer(req.id(), nil, refuse(CodeUnauthorized, "unauthorized"))
		return false
	}
	if string(req.Params.Protocol) != strconv.Itoa(Protocol) {
		l.answer(req.id(), nil, refuse(CodeProtocol, "protocol %.16s is not spoken here, only %d", req.Params.Protocol, Protocol))
		return false
	}
	l.mu.Lock()
	l.greeted = true
	l.mu.Unlock()
	return l.answer(req.id(), run.hello, nil)
}

// list is bounded, as a guest could ask for it again and again.
func (l *Link) list(run *Run, req *request) bool {
	const maxLists = 1000
	l.mu.Lock()
	l.lists++
	many := l.lists > maxLists
	l.mu.Unlock()
	if err := run.open(); err != nil {
		return l.answer(req.id(), nil, err)
	}
	if many {
		return l.answer(req.id(), nil, refuse(CodeLimit, "tools/list: asked for more than %d times", maxLists))
	}
	return l.answer(req.id(), bytes.TrimSuffix(encode(map[string]any{"tools": run.catalog.infos}), []byte("\n")), nil)
}

// cancel is a guest's: it does not want an answer any more.
func (l *Link) cancel(p *params) bool {
	if p == nil {
		return l.refuse(nil, refuse(CodeParams, "params have to be an object"))
	}
	l.current().cancelCall(string(p.ID))
	return true
}

// answer sends a result, which is JSON, or an error. The result comes first
// after the id, in an exact form, for guests that cannot parse JSON. It tells
// whether it could be sent.
func (l *Link) answer(id json.RawMessage, result []byte, e *Error) bool {
	if id == nil {
		id = json.RawMessage("null")
	}
	if e != nil {
		return l.send(e.line(id)) == nil
	}
	line := append(openResult(id, len(result)+2), result...)
	return l.send(append(line, "}\n"...)) == nil
}

// openResult begins an answer in which so many bytes follow.
func openResult(id json.RawMessage, more int) []byte {
	line := make([]byte, 0, len(id)+more+40)
	line = append(append(line, `{"jsonrpc":"2.0","id":`...), id...)
	return append(line, `,"result":`...)
}

// encode is one line of JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // made of what can be encoded
	}
	return append(b, '\n')
}

// send writes a line. It blocks while the guest does not read, until Close.
func (l *Link) send(line []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.conn.Write(line)
	return err
}
