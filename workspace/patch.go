package workspace

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// maxText bounds the files whose text is compared, and maxTexts all of them: what
// is beyond is only said to differ.
const (
	maxText  = 1 << 20
	maxTexts = 64 << 20
)

// content is what a patch compares. Without data it is too large.
type content struct {
	data []byte
	big  bool
}

// patch writes how one path has changed, as git does: git apply and patch take it.
func patch(w io.Writer, c Change, old, new content) error {
	was, now := c.Was, c.Info
	switch c.Kind {
	case Created:
		was = Info{}
	case Deleted:
		was, now = c.Info, Info{}
	}
	if !diffed(was.Type) && !diffed(now.Type) {
		return nil // git has no directories
	}
	if was.Type != now.Type && diffed(was.Type) && diffed(now.Type) {
		// As git shows it: the one goes and the other comes.
		gone, come := c, c
		gone.Kind, gone.Info, come.Kind = Deleted, was, Created
		if err := patch(w, gone, old, content{}); err != nil {
			return err
		}
		return patch(w, come, content{}, new)
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
			return nil // permission bits that git does not keep
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

// diffed tells whether a type has a content to compare.
func diffed(t Type) bool { return t == File || t == Symlink }

// gitMode is a mode as git has it: it keeps whether the owner may execute.
func gitMode(i Info) string {
	switch {
	case i.Type == Symlink:
		return "120000"
	case i.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// quote writes a name as git does: one that could be misread, or that a terminal
// would take for more than a name, stands in quotes.
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

// tabbed ends a name with spaces in it, as git does for patch.
func tabbed(name string) string {
	if strings.Contains(name, " ") && name[0] != '"' {
		return name + "\t"
	}
	return name
}
