package check

import "strings"

type kind uint8

// What a Python token is.
const (
	name kind = iota + 1 // keywords too
	op                   // one character, or "..."
	str                  // a string, or a part of one
	number
	newline // the end of a statement
)

type token struct {
	start, end, line int32
	kind             kind
}

// level is something that is open around the place where the lexer is: an
// f-string, in whose text it is then, or a {field} of one, with code in it.
type level struct {
	quote       byte
	triple, raw bool
	field       bool
	depth       int  // field: how many brackets were open before it
	spec        bool // field: after the colon, which is text again
}

// lexer splits Python as version 3.14 does. Nesting is a stack in memory, not
// calls: code may nest as deeply as it is long.
type lexer struct {
	s      string
	i      int
	line   int32
	depth  int // open brackets
	levels []level
	tokens []token
}

func lexPython(source string) []token {
	l := &lexer{s: source, line: 1}
	for l.i < len(l.s) {
		if n := len(l.levels); n > 0 && (!l.levels[n-1].field || l.levels[n-1].spec) {
			l.literal(&l.levels[n-1])
		} else {
			l.code()
		}
	}
	return l.tokens
}

func (l *lexer) emit(k kind, start int) {
	l.tokens = append(l.tokens, token{int32(start), int32(l.i), l.line, k})
}

// newline moves behind the end of a line, if this is one: \n, \r\n or \r.
func (l *lexer) newline() bool {
	switch {
	case strings.HasPrefix(l.s[l.i:], "\r\n"):
		l.i += 2
	case l.s[l.i] == '\n' || l.s[l.i] == '\r':
		l.i++
	default:
		return false
	}
	l.line++
	return true
}

func isName(c byte) bool {
	return c == '_' || c >= 0x80 || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) code() {
	start, c := l.i, l.s[l.i]
	switch {
	case c == '\n' || c == '\r':
		l.newline()
		if l.depth == 0 && len(l.levels) == 0 {
			l.tokens = append(l.tokens, token{int32(start), int32(start), l.line - 1, newline})
		}
	case c == '#':
		for l.i < len(l.s) && l.s[l.i] != '\n' && l.s[l.i] != '\r' {
			l.i++
		}
	case c == '\\': // the line goes on, or it is an error
		if l.i++; l.i < len(l.s) {
			l.newline()
		}
	case c == ' ' || c == '\t' || c == '\f':
		l.i++
	case c == '"' || c == '\'':
		l.open("")
	case isDigit(c) || c == '.' && l.i+1 < len(l.s) && isDigit(l.s[l.i+1]):
		for l.i < len(l.s) && (isName(l.s[l.i]) || l.s[l.i] == '.') {
			l.i++
		}
		l.emit(number, start)
	case isName(c):
		for l.i < len(l.s) && isName(l.s[l.i]) {
			l.i++
		}
		if prefix := l.s[start:l.i]; len(prefix) <= 2 && l.i < len(l.s) && (l.s[l.i] == '"' || l.s[l.i] == '\'') && isPrefix(prefix) {
			l.open(prefix)
			return
		}
		l.emit(name, start)
	default:
		l.operator(c)
	}
}

func isPrefix(s string) bool {
	switch strings.ToLower(s) {
	case "r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt":
		return true
	}
	return false
}

func (l *lexer) operator(c byte) {
	start := l.i
	if strings.HasPrefix(l.s[l.i:], "...") {
		l.i += 3
		l.emit(op, start)
		return
	}
	l.i++
	var field *level
	if n := len(l.levels); n > 0 {
		field = &l.levels[n-1]
	}
	atField := field != nil && l.depth <= field.depth
	switch {
	case c == '(' || c == '[' || c == '{':
		l.depth++
	case atField && c == '}':
		l.levels = l.levels[:len(l.levels)-1]
	case atField && c == ':':
		field.spec = true
	case (c == ')' || c == ']' || c == '}') && !atField && l.depth > 0:
		l.depth--
	}
	l.emit(op, start)
}

// open begins a string. Of an f-string only the first quote is read: what is in
// it may be code.
func (l *lexer) open(prefix string) {
	prefix = strings.ToLower(prefix)
	now := level{quote: l.s[l.i], raw: strings.Contains(prefix, "r")}
	start := l.i
	if q := l.s[l.i : l.i+1]; strings.HasPrefix(l.s[l.i:], q+q+q) {
		now.triple = true
		l.i += 3
	} else {
		l.i++
	}
	l.emit(str, start)
	l.levels = append(l.levels, now)
	if !strings.ContainsAny(prefix, "ft") {
		l.levels = l.levels[:len(l.levels)-1]
		for l.i < len(l.s) && !l.closed(now) {
			l.skip()
		}
	}
}

// skip moves over one character of text, with the one that it escapes.
func (l *lexer) skip() {
	if l.s[l.i] == '\\' {
		l.i++ // in a raw string, too, a quote after it does not end that
	}
	if l.i < len(l.s) && !l.newline() {
		l.i++
	}
}

// closed moves behind the end of a string, if it is here. A line's end ends one
// that has been left open.
func (l *lexer) closed(s level) bool {
	c := l.s[l.i]
	switch {
	case s.triple:
		if q := string(s.quote); strings.HasPrefix(l.s[l.i:], q+q+q) {
			l.i += 3
			return true
		}
		return false
	case c == s.quote:
		l.i++
		return true
	}
	return c == '\n' || c == '\r'
}

// literal reads text of an f-string up to where code begins, or the end.
func (l *lexer) literal(s *level) {
	for l.i < len(l.s) {
		switch c := l.s[l.i]; {
		case !s.field && strings.HasPrefix(l.s[l.i:], "{{"):
			l.i += 2
		case c == '{':
			start := l.i
			l.i++
			l.emit(op, start)
			l.levels = append(l.levels, level{quote: s.quote, triple: s.triple, raw: s.raw, field: true, depth: l.depth})
			return
		case c == '}' && s.field:
			start := l.i
			l.i++
			l.emit(op, start)
			l.levels = l.levels[:len(l.levels)-1]
			return
		case strings.HasPrefix(l.s[l.i:], `\{`):
			l.i++ // no escape of a brace
		case !s.raw && strings.HasPrefix(l.s[l.i:], `\N{`):
			l.i += 3 // the name of a character
		case l.closed(*s):
			// With a field that was not closed, its string ends too.
			for n := len(l.levels); l.levels[n-1].field; n-- {
				l.depth = l.levels[n-1].depth
				l.levels = l.levels[:n-1]
			}
			l.levels = l.levels[:len(l.levels)-1]
			l.emit(str, l.i)
			return
		default:
			l.skip()
		}
	}
}
