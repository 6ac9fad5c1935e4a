package check

import "strings"

type kind uint8

// The kinds of Python tokens.
const (
	name kind = iota + 1 // identifiers and keywords
	op                   // one character, or "..."
	str                  // a string, or a part of one
	number
	newline // the end of a statement
)

type token struct {
	start, end, line int32
	kind             kind
}

// level is a construct that encloses the lexer's position: an f-string, if the lexer is
// in its text, or a {field} of one, which contains code.
type level struct {
	quote       byte
	triple, raw bool
	field       bool
	depth       int  // of a field: the number of brackets open before it
	spec        bool // of a field: after the colon, where text begins again
}

// lexer tokenizes Python 3.14. It keeps nesting in a slice and does not recurse, since
// code may nest as deeply as it is long.
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

// newline skips a line break (\n, \r\n or \r) and reports whether there was one.
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
	case c == '\\': // a continued line, or an error
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
		quoted := l.i < len(l.s) && (l.s[l.i] == '"' || l.s[l.i] == '\'')
		if prefix := l.s[start:l.i]; quoted && len(prefix) <= 2 && isPrefix(prefix) {
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

// open reads a string, but of an f-string only the opening quote: the rest may contain
// code.
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

// skip skips one character of text, including what a backslash escapes.
func (l *lexer) skip() {
	if l.s[l.i] == '\\' {
		l.i++ // even in a raw string, an escaped quote does not end it
	}
	if l.i < len(l.s) && !l.newline() {
		l.i++
	}
}

// closed skips the end of a string and reports whether there was one. The end of the
// line ends an unterminated string.
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

// literal reads the text of an f-string up to a field or the string's end.
func (l *lexer) literal(s *level) {
	for l.i < len(l.s) {
		switch c := l.s[l.i]; {
		case !s.field && strings.HasPrefix(l.s[l.i:], "{{"):
			l.i += 2
		case c == '{':
			l.openField(*s)
			return
		case c == '}' && s.field:
			start := l.i
			l.i++
			l.emit(op, start)
			l.levels = l.levels[:len(l.levels)-1]
			return
		case strings.HasPrefix(l.s[l.i:], `\{`):
			l.i++ // a brace cannot be escaped
		case !s.raw && strings.HasPrefix(l.s[l.i:], `\N{`):
			l.i += 3 // a character by its name
		case l.closed(*s):
			l.endString()
			return
		default:
			l.skip()
		}
	}
}

func (l *lexer) openField(of level) {
	l.i++
	l.emit(op, l.i-1)
	of.field, of.spec, of.depth = true, false, l.depth
	l.levels = append(l.levels, of)
}

// endString ends an f-string with its unclosed fields.
func (l *lexer) endString() {
	for n := len(l.levels); l.levels[n-1].field; n-- {
		l.depth = l.levels[n-1].depth
		l.levels = l.levels[:n-1]
	}
	l.levels = l.levels[:len(l.levels)-1]
	l.emit(str, l.i)
}
