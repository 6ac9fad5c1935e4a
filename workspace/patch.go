package workspace

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// content is one side of a comparison.
type content struct {
	data []byte
	big  bool // too large or not readable: data is not set
}

// patch writes the change of one path in git's format, which git apply and patch(1)
// accept.
func patch(w io.Writer, c Change, old, new content) error {
	was, now := c.Was, c.Info
	switch c.Kind {
	case Created:
		was = Info{}
	case Deleted:
		was, now = c.Info, Info{}
	}
	if !diffed(was.Type) && !diffed(now.Type) {
		return nil // git does not track directories
	}
	if was.Type != now.Type && diffed(was.Type) && diffed(now.Type) {
		// Like git, show a change of type as a deletion and a creation.
		deleted, created := c, c
		deleted.Kind, deleted.Info, created.Kind = Deleted, was, Created
		if err := patch(w, deleted, old, content{}); err != nil {
			return err
		}
		return patch(w, created, content{}, new)
	}
	var b bytes.Buffer
	from, to := quote("a/"+c.Path), quote("b/"+c.Path)
	fmt.Fprintf(&b, "diff --git %s %s\n", from, to)
	switch {
	case !diffed(was.Type):
		fmt.Fprintf(&b, "new file mode %s\n", gitMode(now))
		from = "/dev/null"
	case !diffed(now.Type):
		fmt.Fprintf(&b, "deleted file mode %s\n", gitMode(was))
		to = "/dev/null"
	case gitMode(was) != gitMode(now):
		fmt.Fprintf(&b, "old mode %s\nnew mode %s\n", gitMode(was), gitMode(now))
	}
	switch {
	case old.text() && new.text():
		_, hunks, _ := bytes.Cut(diff.Diff("a", old.data, "b", new.data), []byte("\n"))
		if _, hunks, found := bytes.Cut(hunks, []byte("\n+++ b\n")); found {
			fmt.Fprintf(&b, "--- %s\n+++ %s\n%s", tabbed(from), tabbed(to), hunks)
		} else if diffed(was.Type) && diffed(now.Type) && gitMode(was) == gitMode(now) {
			return nil // only permission bits that git does not track
		}
	case old.big || new.big || !bytes.Equal(old.data, new.data):
		fmt.Fprintf(&b, "Binary files %s and %s differ\n", from, to)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (c content) text() bool {
	return !c.big && !bytes.ContainsRune(c.data, 0) && utf8.Valid(c.data)
}

// diffed reports whether files of a type have content to compare.
func diffed(t Type) bool { return t == File || t == Symlink }

// gitMode returns git's mode, which keeps only the owner's permission to execute.
func gitMode(i Info) string {
	switch {
	case i.Type == Symlink:
		return "120000"
	case i.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// quote writes a name as git does. It quotes names that could be misread or that hold
// control sequences for a terminal.
func quote(name string) string {
	plain := func(c byte) bool { return c >= ' ' && c != '"' && c != '\\' && c < 0x7f }
	odd := false
	for i := range len(name) {
		odd = odd || !plain(name[i])
	}
	if !odd {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case !plain(c):
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// tabbed adds a tab to a name with spaces, as git does for patch(1).
func tabbed(name string) string {
	if strings.Contains(name, " ") && name[0] != '"' {
		return name + "\t"
	}
	return name
}
