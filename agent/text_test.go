package agent

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTranscript(t *testing.T) {
	type piece struct {
		from Stream
		text string
	}
	for _, c := range []struct {
		name   string
		limit  int
		pieces []piece
		end    []string
		want   string
	}{
		{"nothing", 100, nil, nil, ""},
		{"nothing but an end", 100, nil, []string{"[exit code: 1]"}, "[exit code: 1]"},
		{"axio: order", 100, []piece{{Stdout, "a\n"}, {Stderr, "b\n"}, {Stdout, "c\n"}}, []string{"[exit code: 1]"},
			"a\n[stderr]\nb\n[stdout]\nc\n[exit code: 1]"},
		{"a label begins a line", 100, []piece{{Stdout, "a"}, {Stderr, "b"}}, nil, "a\n[stderr]\nb"},
		{"axio: a character in two pieces", 100, []piece{{Stdout, "a\xc5"}, {Stdout, "\xbe"}}, nil, "až"},
		{"axio: a character in two pieces with others between", 100,
			[]piece{{Stdout, "\xf0\x9f"}, {Stderr, "x"}, {Stdout, "\x98\x80"}}, nil, "[stderr]\nx\n[stdout]\n😀"},
		{"a character that does not end", 100, []piece{{Stdout, "a\xc5"}}, nil, "a\uFFFD"},
		{"bytes that are none", 100, []piece{{Stderr, "\xff\xfea"}}, nil, "[stderr]\n\uFFFDa"},
		{"axio: white space", 100, []piece{{Stdout, "\n  a \t\n\n"}}, nil, "\n  a \t"},
		{"the middle goes", 80, []piece{{Stdout, "first line\n" + strings.Repeat("x", 100) + "\nlast line\n"}}, nil,
			"first line...[truncated]\n" + strings.Repeat("x", 39) + "\nlast line"},
		{"no part of a character stays", 80, []piece{{Stdout, strings.Repeat("ž", 100)}}, nil,
			"žžžžž...[truncated]\n" + strings.Repeat("ž", 25)},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTranscript(c.limit, nil)
			for _, p := range c.pieces {
				if n, err := (output{tr, p.from}).Write([]byte(p.text)); n != len(p.text) || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			}
			for range 2 { // asking changes nothing
				if got := tr.text(c.end...); got != c.want {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
			}
		})
	}
}

// Whatever is written, what is kept is bounded and is text.
func TestTranscriptIsBounded(t *testing.T) {
	for _, size := range []int{1, 7, 1000, 100_000} {
		tr := newTranscript(4096, nil)
		for i := range 200_000 / size {
			from := Stdout
			if i%2 == 1 {
				from = Stderr
			}
			_, _ = output{tr, from}.Write([]byte(strings.Repeat("ž\xff", size)[:size]))
		}
		if got := tr.text(); len(got) > 4096+2*labelSize+len(truncated) || !utf8.ValidString(got) {
			t.Errorf("pieces of %d: %d bytes", size, len(got))
		}
	}
}

func TestDiff(t *testing.T) {
	const no = "\n\\ No newline at end of file"
	for _, c := range []struct{ name, a, b, want string }{
		{"axio: both end in a newline", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b"},
		{"axio: neither does", "a", "b", "@@ -1 +1 @@\n-a" + no + "\n+b" + no},
		{"axio: the newline goes", "a\n", "a", "@@ -1 +1 @@\n-a\n+a" + no},
		{"axio: the newline comes", "a", "a\n", "@@ -1 +1 @@\n-a" + no + "\n+a"},
		{"axio: another line, then none", "a\nb\n", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n+c" + no},
		{"axio: context without one", "a\nb", "c\nb", "@@ -1,2 +1,2 @@\n-a\n+c\n b" + no},
		{"nothing changes", "a\n", "a\n", ""},
		{"all of it is new", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b"},
		{"two hunks", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "x\n2\n3\n4\n5\n6\n7\n8\ny\n",
			"@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y"},
		{"one hunk", "1\n2\n3\n4\n5\n6\n7\n8\n", "x\n2\n3\n4\n5\n6\n7\ny\n",
			"@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y"},
		{"the least", "a\nb\nc\nd\n", "a\nc\nd\ne\n", "@@ -1,4 +1,4 @@\n a\n-b\n c\n d\n+e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := diff([]byte(c.a), []byte(c.b)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	t.Run("large", func(t *testing.T) {
		got := diff([]byte(strings.Repeat("a\n", 1<<20)), []byte(strings.Repeat("b\n", 1<<20)))
		if len(got) > maxDiff+len(truncated) || !strings.HasSuffix(got, truncated) {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// apply does what a diff says, checking each line that it names.
func apply(t *testing.T, text, diff string) string {
	t.Helper()
	if diff == "" {
		return text
	}
	diff += "\n" // texts here end in one
	from := splitLines([]byte(text))
	var out strings.Builder
	at := 0
	header := regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@\n$`)
	for i := 0; i < len(diff); {
		end := strings.IndexByte(diff[i:], '\n') + 1
		if end == 0 {
			end = len(diff) - i
		}
		l := diff[i : i+end]
		i += end
		if m := header.FindStringSubmatch(l); m != nil {
			first, _ := strconv.Atoi(m[1])
			if m[2] != "0" {
				first--
			}
			for ; at < first; at++ {
				out.Write(from[at])
			}
			continue
		}
		if l[0] != '+' {
			if at >= len(from) || string(from[at]) != l[1:] {
				t.Fatalf("the diff has %q at line %d of %q", l, at, text)
			}
			at++
		}
		if l[0] != '-' {
			out.WriteString(l[1:])
		}
	}
	for ; at < len(from); at++ {
		out.Write(from[at])
	}
	return out.String()
}

func TestDiffSaysWhatChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := func() string {
		var b strings.Builder
		for range r.IntN(30) {
			fmt.Fprintf(&b, "%c\n", 'a'+rune(r.IntN(3)))
		}
		return b.String()
	}
	for range 5000 {
		a, b := words(), words()
		if got := apply(t, a, diff([]byte(a), []byte(b))); got != b {
			t.Fatalf("from %q to %q: got %q by\n%s", a, b, got, diff([]byte(a), []byte(b)))
		}
	}
}
