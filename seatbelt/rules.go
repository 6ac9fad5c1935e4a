package seatbelt

import (
	"fmt"
	"strings"
)

// rule allows or denies operations on whatever matches one of the filters, or on
// everything without filters.
type rule struct {
	why     string // the comment above it in the text; identifies it in tests
	allow   bool
	ops     []string
	filters []filter
}

func allow(why string, filters []filter, ops ...string) rule {
	return rule{why: why, allow: true, ops: ops, filters: filters}
}

func deny(why string, filters []filter, ops ...string) rule {
	return rule{why: why, ops: ops, filters: filters}
}

// filter is a condition: (word), (word "arg"), (word (param "arg")) or
// (word sub…).
type filter struct {
	word  string
	arg   string
	param bool
	sub   []filter
}

// each returns one filter for each argument.
func each(word string, args ...string) []filter {
	var fs []filter
	for _, arg := range args {
		fs = append(fs, filter{word: word, arg: arg})
	}
	return fs
}

func render(rules []rule) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(deny default)\n")
	for _, r := range rules {
		b.WriteString("\n; " + r.why + "\n(")
		if r.allow {
			b.WriteString("allow")
		} else {
			b.WriteString("deny")
		}
		for _, op := range r.ops {
			b.WriteString(" " + op)
		}
		for _, f := range r.filters {
			b.WriteString("\n  ")
			f.render(&b)
		}
		b.WriteString(")\n")
	}
	return b.String()
}

func (f filter) render(b *strings.Builder) {
	b.WriteString("(" + f.word)
	switch {
	case f.param:
		b.WriteString(" (param " + quote(f.arg) + ")")
	case f.arg != "":
		b.WriteString(" " + quote(f.arg))
	}
	for _, s := range f.sub {
		b.WriteString(" ")
		s.render(b)
	}
	b.WriteString(")")
}

// quote returns s as a string literal of SBPL, whose reader is TinyScheme's: \xHH is a
// byte. It writes all strings of a profile.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
