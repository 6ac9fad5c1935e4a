package seatbelt

import (
	"regexp"
	"strings"
)

// fold returns a regular expression for the paths that a case-insensitive file system
// of macOS takes for root+rest. root exists and is reported as stored; rest may be
// asked for in any spelling. The expression also matches some other names with
// characters outside ASCII, since it does not rely on a Unicode-aware regexp engine.
//
// The attack is CVE-2014-9390: create .GIT/hooks where .git/hooks is denied.
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
	// other matches the rest of a name from a character outside ASCII on.
	other = "[^ -~][^/]*"

	// joined lists the letters to which characters outside ASCII fold, alone or in
	// sequence: ſ to s, K (the Kelvin sign) to k, ß to ss, ﬁ to fi, ﬄ to ffl, ﬆ to st.
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
