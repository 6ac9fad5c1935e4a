package agent

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	diffContext = 3        // unchanged lines shown around a change
	maxDiff     = 16 << 10 // bytes of a diff that are shown
	// maxEdits bounds the search for the shortest diff, whose memory grows with the
	// square of the edits. Beyond it, the diff replaces one block by another.
	maxEdits = 1000
)

// change replaces lines a1 to a2 of one text with b1 to b2 of another.
type change struct{ a1, a2, b1, b2 int }

// diff returns a unified diff of two texts, without file names.
func diff(old, new []byte) string {
	a, b := splitLines(old), splitLines(new)
	var out strings.Builder
	for rest := changes(a, b); len(rest) > 0; {
		n := 1 // changes that share context belong to one hunk
		for n < len(rest) && rest[n].a1-rest[n-1].a2 <= 2*diffContext {
			n++
		}
		hunk(&out, a, b, rest[:n])
		rest = rest[n:]
		if out.Len() > maxDiff {
			break
		}
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if len(text) > maxDiff {
		text = text[:maxDiff]
		return text[:len(text)-cutRune([]byte(text))] + truncated
	}
	return text
}

func hunk(out *strings.Builder, a, b [][]byte, changes []change) {
	first, last := changes[0], changes[len(changes)-1]
	before := min(diffContext, first.a1)
	after := min(diffContext, len(a)-last.a2)
	a1, a2, b1, b2 := first.a1-before, last.a2+after, first.b1-before, last.b2+after
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(a1, a2), span(b1, b2))
	at := a1
	for _, c := range changes {
		lines(out, ' ', a[at:c.a1])
		lines(out, '-', a[c.a1:c.a2])
		lines(out, '+', b[c.b1:c.b2])
		at = c.a2
	}
	lines(out, ' ', a[at:a2])
}

// span names the lines of a hunk: the first and their number, or for no lines, the line
// before them.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func lines(out *strings.Builder, mark byte, lines [][]byte) {
	for _, l := range lines {
		if out.Len() > maxDiff {
			return // diff cuts the rest
		}
		out.WriteByte(mark)
		out.Write(l)
		if !bytes.HasSuffix(l, []byte("\n")) {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// changes returns the shortest list of changes from a to b, by Myers' algorithm ("An
// O(ND) Difference Algorithm and Its Variations", 1986).
func changes(a, b [][]byte) []change {
	start := 0
	for start < len(a) && start < len(b) && bytes.Equal(a[start], b[start]) {
		start++
	}
	n, m := len(a)-start, len(b)-start
	for n > 0 && m > 0 && bytes.Equal(a[start+n-1], b[start+m-1]) {
		n, m = n-1, m-1
	}
	a, b = a[start:start+n], b[start:start+m]
	trace := furthest(a, b)
	if n == 0 || m == 0 || trace == nil {
		if n == 0 && m == 0 {
			return nil
		}
		return []change{{start, start + n, start, start + m}}
	}
	back := backtrack(trace, n, m)
	out := make([]change, len(back))
	for i, c := range back {
		out[len(back)-1-i] = change{c.a1 + start, c.a2 + start, c.b1 + start, c.b2 + start}
	}
	return out
}

// backtrack follows a trace of furthest from the end to the start, edit by edit, and
// returns the changes in reverse.
func backtrack(trace [][]int, x, y int) (back []change) {
	for d := len(trace) - 1; d > 0; d-- {
		v, k := trace[d-1], x-y
		down := k == -d || k != d && v[d-1+k-1+1] < v[d-1+k+1+1]
		prev := k - 1
		if down {
			prev = k + 1
		}
		px := v[d-1+prev+1]
		py := px - prev
		c := change{px, px + 1, py, py}
		if down {
			c = change{px, px, py, py + 1}
		}
		if l := len(back); l > 0 && back[l-1].a1 == c.a2 && back[l-1].b1 == c.b2 {
			back[l-1].a1, back[l-1].b1 = c.a1, c.b1
		} else {
			back = append(back, c)
		}
		x, y = px, py
	}
	return back
}

// furthest returns, for each number of edits d, how far each diagonal k reaches, at index
// d+k+1. It returns nil if more than maxEdits are needed.
func furthest(a, b [][]byte) (trace [][]int) {
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		v := make([]int, 2*d+3)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				last := trace[d-1]
				down, right := -1, -1 // from the diagonals k+1 and k-1
				if k < d {
					down = last[d-1+k+1+1]
				}
				if k > -d {
					right = last[d-1+k-1+1] + 1
				}
				x = max(down, right)
			}
			for x < len(a) && x-k >= 0 && x-k < len(b) && bytes.Equal(a[x], b[x-k]) {
				x++
			}
			v[d+k+1] = x
			if x >= len(a) && x-k >= len(b) {
				return append(trace, v)
			}
		}
		trace = append(trace, v)
	}
	return nil
}
