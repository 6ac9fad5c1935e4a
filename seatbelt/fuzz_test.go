package seatbelt

import (
	"errors"
	"strings"
	"testing"
)

// A string is one string, whatever is in it, and comes back as it was.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "/a b", `"`, `\`, `\"`, "a\nb", `")(allow default)("`, "é", "\xff", "#;(", "\x00", `\x41`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		nodes, err := readAll("(before " + quote(s) + " after)")
		if err != nil || len(nodes) != 1 || len(nodes[0].list) != 3 {
			t.Fatalf("%q: %v %v", s, nodes, err)
		}
		if n := nodes[0].list[1]; n.kind != '"' || n.text != s {
			t.Fatalf("%q came back as %q", s, n.text)
		}
	})
}

// Whatever a directory is called, it and nothing beside it can be written to, and
// what is kept in it cannot.
func FuzzNew(f *testing.F) {
	for _, s := range []string{"a", "a b", `q"`, "n\nl", ")(allow default)", "k=v", "é", "#;", "K", "../x", "a//b", "\x00", "\xff", `\`, "a/b", "[a", "a*", "ſk", ".git"} {
		f.Add(s)
	}
	const top = "/zq7"
	f.Fuzz(func(t *testing.T, s string) {
		name := top + "/" + s
		p, err := New(Config{Write: []Path{{name, true}, {top + "/kept", true}}, Keep: []string{name + "/" + s, top + "/kept/" + s}})
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if strings.Contains(p.String(), "zq7") {
			t.Fatal("the path is in the text")
		}
		e, err := load(p.String(), p.Params())
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		for path, want := range map[string]bool{
			name + "/other": true, name + "x": false, top + "/x" + s: false, top: false,
			name + "/" + s: false, name + "/" + s + "/x": false, top + "/kept/" + s: false, top + "/kept/" + s + "/x": false,
		} {
			if strings.HasPrefix(s, "kept") || strings.HasPrefix(strings.ToLower(s), "other") {
				continue // beneath one another
			}
			a := ask{op: "file-write-create", arg: path}
			last, exact, err := e.decide(a)
			if err != nil || last != want || exact != want {
				t.Fatalf("%q: writing to %q is %v and %v, want %v (%v)", name, path, last, exact, want, err)
			}
		}
	})
}
