package agent

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"
)

// Stream is one of a command's output streams.
type Stream string

// The output streams of a command.
const (
	Stdout Stream = "stdout" // standard output
	Stderr Stream = "stderr" // standard error
)

const truncated = "...[truncated]"

// transcript keeps what a command writes to both streams in the order of arrival. Of
// longer output it keeps the first quarter of the limit and the last three quarters,
// since a program usually says at the end how it failed.
type transcript struct {
	limit int                  // bytes
	tell  func(Stream, string) // gets the whole output as it arrives; may be nil

	telling sync.Mutex // serializes tell; locked before mu

	mu      sync.Mutex
	head    []segment
	tail    []segment
	size    [2]int            // of head and tail, labels included
	cut     bool              // something between head and tail was dropped
	partial map[Stream][]byte // the incomplete last character of a stream
}

type segment struct {
	from Stream
	text []byte
}

// labelSize is counted for each segment besides its text, so that output which alternates
// between the streams is bounded as well.
const labelSize = len("\n[stdout]\n")

func newTranscript(limit int, tell func(Stream, string)) *transcript {
	return &transcript{limit: limit, tell: tell, partial: make(map[Stream][]byte)}
}

// output is the Writer for one stream.
type output struct {
	t    *transcript
	from Stream
}

// Write implements io.Writer and never fails.
func (o output) Write(p []byte) (int, error) {
	o.t.telling.Lock()
	defer o.t.telling.Unlock()
	text := o.t.take(o.from, p)
	// Not under mu: a slow receiver must not delay the final answer.
	if o.t.tell != nil && len(text) > 0 {
		o.t.tell(o.from, string(text))
	}
	return len(p), nil
}

// take keeps the whole characters of p and of what was left of the last call, and returns
// them.
func (t *transcript) take(from Stream, p []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := append(t.partial[from], p...)
	whole := len(b) - cutRune(b)
	t.partial[from] = bytes.Clone(b[whole:])
	text := bytes.ToValidUTF8(b[:whole], []byte("\uFFFD"))
	t.keep(from, text)
	return text
}

// cutRune returns the length of an incomplete character at the end of b.
func cutRune(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return i
		}
	}
	return 0
}

func (t *transcript) keep(from Stream, text []byte) {
	if len(t.tail) == 0 && !t.cut {
		n := min(len(text), max(0, t.limit/4-t.size[0]-labelSize))
		for n < len(text) && n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		t.head, t.size[0] = join(t.head, t.size[0], from, text[:n])
		text = text[n:]
	}
	t.tail, t.size[1] = join(t.tail, t.size[1], from, text)
	for most := t.limit - t.limit/4; t.size[1] > most; t.cut = true {
		first := &t.tail[0]
		if over := t.size[1] - most; over < len(first.text) {
			for over < len(first.text) && !utf8.RuneStart(first.text[over]) {
				over++
			}
			first.text = first.text[over:]
			t.size[1] -= over
			continue
		}
		t.size[1] -= len(first.text) + labelSize
		t.tail = t.tail[1:]
	}
}

func join(to []segment, size int, from Stream, text []byte) ([]segment, int) {
	if len(text) == 0 {
		return to, size
	}
	if n := len(to); n > 0 && to[n-1].from == from {
		to[n-1].text = append(to[n-1].text, text...)
		return to, size + len(text)
	}
	return append(to, segment{from, bytes.Clone(text)}), size + len(text) + labelSize
}

// text returns what was kept, followed by lines that say how the command ended. A label
// marks where the stream changes; text before the first label is standard output.
// Newlines at the end of the output are removed.
func (t *transcript) text(end ...string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endPartial()
	var b strings.Builder
	line := func(s string) {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}
	last := Stdout
	write := func(segments []segment) {
		for _, s := range segments {
			if s.from != last {
				line("[" + string(s.from) + "]\n")
				last = s.from
			}
			b.Write(s.text)
		}
	}
	write(t.head)
	if t.cut {
		b.WriteString(truncated + "\n")
	}
	write(t.tail)
	all := strings.TrimRight(b.String(), "\n")
	b.Reset()
	b.WriteString(all)
	for _, s := range end {
		line(s)
	}
	return b.String()
}

// endPartial replaces incomplete characters at the end of the streams.
func (t *transcript) endPartial() {
	for _, from := range []Stream{Stdout, Stderr} {
		if len(t.partial[from]) > 0 {
			delete(t.partial, from)
			t.keep(from, []byte("\uFFFD"))
		}
	}
}
