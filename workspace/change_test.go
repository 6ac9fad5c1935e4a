package workspace

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	r := Rules{Protected: []string{".git/hooks", ".github/workflows", ".npmrc"}, Pinned: []string{".git", ".github"}}
	for _, c := range []struct {
		path  string
		kind  Kind
		typ   Type
		allow bool
	}{
		{"a", Created, File, true},
		{".git", Modified, Dir, true}, // its mode
		{".git", Modified, File, false},
		{".git", Deleted, Dir, false},
		{".GIT", Created, Symlink, false},
		{".git/hooks", Created, Dir, false},
		{".git/hooks/x", Created, File, false},
		{".Git/Hooks/x", Created, File, false},
		{".git/hooks2", Created, File, true},
		{".git/index", Modified, File, true},
		{".github", Created, Dir, true},
		{".github", Created, Symlink, false},
		{".github/workflows/x", Deleted, File, false},
		{"sub/.npmrc", Created, File, true},
		{".npmrc", Created, FIFO, false},
	} {
		if got := r.allows(Change{Path: c.path, Kind: c.kind, Info: Info{Type: c.typ}}); got != c.allow {
			t.Errorf("%s %s %s: allowed %t", c.path, c.kind, c.typ, got)
		}
	}
}

// What a guest names its files makes no other file of a patch, and reaches no
// terminal as it is.
func TestPatchNames(t *testing.T) {
	for name, want := range map[string]string{
		"plain": "b/plain", "sp ace": "b/sp ace", "x\n+++ b/etc": `"b/x\012+++ b/etc"`, "\x1b]0;x\a": `"b/\033]0;x\007"`,
		`q"\`: `"b/q\"\\"`, "ä\u009b": `"b/\303\244\302\233"`, "\xff": `"b/\377"`,
	} {
		var b strings.Builder
		if err := patch(&b, Change{Path: name, Kind: Created, Info: Info{Type: File, Mode: 0o644}}, content{}, content{data: []byte("x\n")}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		if len(lines) != 7 || strings.TrimSuffix(lines[3], "\t") != "+++ "+want {
			t.Errorf("%q: %q, want %q", name, b.String(), want)
		}
	}
}

func TestRefusedErrorIsShort(t *testing.T) {
	e := &RefusedError{Paths: strings.Split("a b c d e f g\nh", " "), Err: ErrConflict}
	if got := e.Error(); got != `nothing was committed: changed on the host meanwhile: "a", "b", "c", "d", "e" and 2 more` {
		t.Error(got)
	}
}
