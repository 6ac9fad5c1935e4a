package wire

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/internal/lines"
)

// Job is the work that a guest receives. All fields may be zero.
type Job struct {
	Language string                     // of Code
	Code     string                     // to run
	Vars     map[string]json.RawMessage // variables; each value is JSON
	Args     []string                   // arguments of the code
	Stateful bool                       // another job may follow
	// Brief leaves the tools out of the answer to hello, for a guest that knows them
	// already. tools/list returns them in any case.
	Brief bool
}

// Link is the connection to one guest. It serves one run at a time. Its methods are
// safe for concurrent use.
type Link struct {
	conn   io.ReadWriteCloser
	limits broker.Limits
	token  string

	writing sync.Mutex
	reader  reader

	mu        sync.Mutex
	run       *Run // nil before the first Start
	greeted   bool
	invalid   int             // requests that were none
	lists     int             // requests for tools/list
	quick     map[string]bool // by full name of a tool: its last call was; see reader
	ended     chan struct{}   // closed when reading has ended
	handshake *time.Timer
	closing   sync.Once
}

// NewLink returns a link that owns conn. The guest is read from once a run starts.
// Close ends the link.
func NewLink(conn io.ReadWriteCloser, limits broker.Limits) *Link {
	limits = limits.WithDefaults()
	l := &Link{
		conn: conn, limits: limits, token: randomHex(16),
		quick: make(map[string]bool), ended: make(chan struct{}),
	}
	l.reader.in = lines.Reader{From: conn, Limit: limits.Frame}
	l.reader.wake = make(chan struct{}, 1)
	return l
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // documented never to fail
	return hex.EncodeToString(b)
}

// Token returns what the guest must send in hello: 32 hexadecimal digits, 128 random
// bits.
func (l *Link) Token() string { return l.token }

// Done is closed when nothing more is read from the guest.
func (l *Link) Done() <-chan struct{} { return l.ended }

// Start begins a run with the tools of a set; nil means no tools. The first job is the
// answer to hello, later ones are sent to the guest. The run before must have ended.
// ctx is passed to tools, and ends the run when it is done. The error is ErrClosed if
// the guest is gone, and otherwise about the set or the job.
func (l *Link) Start(ctx context.Context, s *broker.Set, j Job) (*Run, error) {
	if s == nil {
		s = new(broker.Set)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	r := newRun(ctx, l, s)
	job, err := json.Marshal(r.info(j))
	if err != nil {
		return nil, err
	}
	if len(job)+128 > l.limits.Frame { // 128 bytes for the rest of the line
		const text = "code and variables take %d bytes; the limit is %d"
		return nil, broker.Errorf(broker.CodeTooLarge, text, len(job), l.limits.Frame)
	}
	r.job = job
	l.mu.Lock()
	first := l.run == nil
	l.run = r
	greeted := l.greeted
	l.mu.Unlock()
	if first {
		l.handshake = time.AfterFunc(l.limits.Handshake, l.hangUpUngreeted)
		go l.serve()
		go l.watch()
		return r, nil
	}
	if !greeted {
		r.close() // releases its context
		return nil, broker.ErrClosed
	}
	next := notification{Version: "2.0", Method: "run", Params: json.RawMessage(job)}
	if err := l.send(encode(next)); err != nil {
		r.close()
		return nil, errors.Join(broker.ErrClosed, err)
	}
	return r, nil
}

// hangUpUngreeted closes the link if there was no hello in time.
func (l *Link) hangUpUngreeted() {
	l.mu.Lock()
	greeted := l.greeted
	l.mu.Unlock()
	if !greeted {
		_ = l.Close()
	}
}

// Close closes the connection and ends the run. It waits until nothing is read any
// more. It is safe to call twice.
func (l *Link) Close() error {
	err := l.hangUp()
	if run := l.current(); run != nil {
		run.close() // the reader may be waiting for it
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

// answer sends a result, which is JSON, or an error. It reports whether that succeeded.
func (l *Link) answer(id json.RawMessage, result []byte, e *broker.Error) bool {
	if id == nil {
		id = json.RawMessage("null")
	}
	if e != nil {
		return l.send(errorLine(id, e)) == nil
	}
	line := append(openResult(id, len(result)+2), result...)
	return l.send(append(line, "}\n"...)) == nil
}

// send writes a line. It blocks while the guest does not read, until Close.
func (l *Link) send(line []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.conn.Write(line)
	return err
}
