package seatbelt

import (
	"regexp"
	"strings"
)

// fold is a regular expression of the paths that a case-insensitive file system
// of macOS takes for root+rest: root is there already, and therefore known by
// the name that it has, rest may be asked for in any spelling. It matches a
// little more, by names with characters outside ASCII: the engine behind it
// need not know any Unicode.
//
// The attack is CVE-2014-9390: where .git/hooks is denied, make .GIT/hooks.
func fold(root, rest string) string {
	var b strings.Builder
	b.WriteByte('^')
	for i, c := range []byte(root) {
		switch {
		case printable(rune(c)):
			b.WriteString(regexp.QuoteMeta(string(c)))
		case i == 0 || printable(rune(root[i-1])):
			b.WriteString("[^/]+")
		}
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		b.WriteByte('/')
		foldName(&b, name)
	}
	return b.String()
}

func printable(c rune) bool { return ' ' <= c && c <= '~' }

const (
	// other is what a name with a character outside ASCII goes on with.
	other = "[^ -~][^/]*"

	// joined are the letters of which characters outside ASCII fold to one or
	// more: ſ to s, K (the sign of Kelvin) to k, ß to ss, ﬁ to fi, ﬄ to ffl, ﬆ to st.
	joined = "fiklstFIKLST"
)

func foldName(b *strings.Builder, name string) {
	if strings.ContainsFunc(name, func(c rune) bool { return !printable(c) }) {
		b.WriteString("[^/]*" + other)
		return
	}
	for name != "" {
		run := len(name) - len(strings.TrimLeft(name, joined))
		if !strings.ContainsAny(name[:run], "fksFKS") {
			foldByte(b, name[0])
			name = name[1:]
			continue
		}
		b.WriteByte('(')
		for _, c := range []byte(name[:run]) {
			foldByte(b, c)
		}
		b.WriteString("|[" + joined + "]*" + other + ")")
		name = name[run:]
	}
}

func foldByte(b *strings.Builder, c byte) {
	if up := c &^ 0x20; 'A' <= up && up <= 'Z' {
		b.WriteString("[" + string(up|0x20) + string(up) + "]")
	} else {
		b.WriteString(regexp.QuoteMeta(string(c)))
	}
}
