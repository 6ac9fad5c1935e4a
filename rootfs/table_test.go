package rootfs

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func paths(t Table) string {
	var p []string
	for _, n := range t {
		p = append(p, n.Kind.String()+":"+n.Path)
	}
	return strings.Join(p, " ")
}

func TestAdd(t *testing.T) {
	root := Table{{Path: "/", Kind: Static}}
	for _, c := range []struct {
		name string
		add  []Node
		want string
	}{
		{"parents are made",
			[]Node{{Path: "/a/b", Kind: Bind}},
			"static:/ dir:/a bind:/a/b"},
		{"nothing is made in a bind",
			[]Node{{Path: "/a", Kind: Bind}, {Path: "/a/b/c", Kind: Bind}},
			"static:/ bind:/a bind:/a/b/c"},
		{"nothing is made in an overlay that is not the root",
			[]Node{{Path: "/a", Kind: Overlay}, {Path: "/a/b/c", Kind: Tmpfs}},
			"static:/ overlay:/a tmpfs:/a/b/c"},
		{"parents in a tmpfs",
			[]Node{{Path: "/t", Kind: Tmpfs}, {Path: "/t/b/c", Kind: Bind}},
			"static:/ tmpfs:/t dir:/t/b bind:/t/b/c"},
		{"in place of the same path",
			[]Node{{Path: "/w", Kind: Tmpfs}, {Path: "/w", Kind: Bind}},
			"static:/ bind:/w"},
		{"a mount hides what is beneath",
			[]Node{{Path: "/etc/passwd", Kind: File}, {Path: "/etcx", Kind: Dir}, {Path: "/etc", Kind: Bind}},
			"static:/ bind:/etc dir:/etcx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := root
			table = append(Table{}, table...)
			for _, n := range c.add {
				table = table.Add(n)
			}
			if got := paths(table); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestLayout(t *testing.T) {
	table := Table{
		{Path: "/", Kind: Static}, {Path: "/usr", Kind: Bind}, {Path: "/tmp", Kind: Tmpfs},
		{Path: "/tmpx", Kind: Dir}, {Path: "/tmp/a", Kind: Dir}, {Path: "/tmp/a/b", Kind: Bind},
	}
	l := table.Layout()
	shared, own := l.Shared, l.Own
	want := "static:/ bind:/usr dir:/tmpx | tmpfs:/tmp dir:/tmp/a bind:/tmp/a/b"
	if got := paths(shared) + " | " + paths(own); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSort(t *testing.T) {
	table := Table{{Path: "/b/c", Kind: Dir}, {Path: "/", Kind: Static}, {Path: "/b", Kind: Dir}, {Path: "/a", Kind: Dir}}
	table.Sort()
	if got, want := paths(table), "static:/ dir:/b dir:/a dir:/b/c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		dir, p string
		want   bool
	}{{"/", "/x", true}, {"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a/b", "/a", false}} {
		if got := Within(c.dir, c.p); got != c.want {
			t.Errorf("Within(%q, %q) = %v", c.dir, c.p, got)
		}
	}
}

func TestSourceIs(t *testing.T) {
	id := Identity{Dev: 1, Ino: 2, Born: 3, Dir: true}
	s := Source{Path: "/x", Identity: id}
	if err := s.Is(id); err != nil {
		t.Error(err)
	}
	for _, other := range []Identity{{1, 9, 3, true}, {9, 2, 3, true}, {1, 2, 9, true}, {1, 2, 3, false}} {
		if err := s.Is(other); !errors.Is(err, ErrChanged) {
			t.Errorf("%v: %v", other, err)
		}
	}
}

// Key must tell apart any two tables that differ: sandboxes whose tables have one key
// share a template.
func TestKeyKnowsEveryField(t *testing.T) {
	base := Node{
		Path: "/a", Kind: File, Data: "x", Masked: []string{"m"}, Locked: []string{"l"}, Source: Source{Path: "/s"},
	}
	seen := map[string]string{Table{base}.Key(): "base"}
	var change func(v reflect.Value, name string)
	change = func(v reflect.Value, name string) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				// Who owns a source decides nothing about the mount.
				if f := v.Type().Field(i).Name; v.Type() != reflect.TypeFor[Source]() || f == "Path" || f == "Identity" {
					change(v.Field(i), name+"."+f)
				}
			}
			return
		case reflect.String:
			v.SetString(v.String() + "'")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int64, reflect.Int:
			v.SetInt(v.Int() + 7)
		case reflect.Uint64, reflect.Uint32, reflect.Uint8:
			v.SetUint(v.Uint() + 1)
		case reflect.Slice:
			v.Set(reflect.ValueOf([]string{"other"}))
		default:
			t.Fatalf("%s: a %v", name, v.Kind())
		}
		key := Table{base}.Key()
		if other, ok := seen[key]; ok {
			t.Errorf("a change of %s gives the key of %s", name, other)
		}
		seen[key] = name
		v.Set(old)
	}
	change(reflect.ValueOf(&base).Elem(), "Node")
}
