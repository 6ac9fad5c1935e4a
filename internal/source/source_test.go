package source

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"testing"
)

type imports map[string]*types.Package

func (i imports) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return importer.Default().Import(path)
}

// parse checks a package that consists of files, which may import pkgs.
func parse(t *testing.T, path string, pkgs imports, files ...string) *Package {
	t.Helper()
	p := &Package{Path: strings.TrimPrefix(path, Module+"/"), Fset: token.NewFileSet(),
		Info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}
	for i, text := range files {
		f, err := parser.ParseFile(p.Fset, string(rune('a'+i))+".go", text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		p.Files = append(p.Files, f)
	}
	var err error
	if p.Types, err = (&types.Config{Importer: pkgs}).Check(path, p.Fset, p.Files, p.Info); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLeaks(t *testing.T) {
	secret := parse(t, Module+"/internal/secret", nil, `package secret; type T struct{ F int }; type G[E any] []E; type I interface{ M() }`)
	pkgs := imports{secret.Types.Path(): secret.Types}
	for _, row := range []struct {
		name, decl string
		leaks      bool
	}{
		{"result", `func F() (int, secret.T) { panic(0) }`, true},
		{"parameter", `func F(...*secret.T) {}`, true},
		{"function type", `func F(func(map[string][]secret.T)) {}`, true},
		{"method", `type X int; func (*X) M(chan secret.T) {}`, true},
		{"field", `type X struct { F struct { G [2]secret.T } }`, true},
		{"embedded", `type X struct { secret.T }`, true},
		{"method of an embedded type", `type x int; func (x) M(secret.T) {}; type X struct { *x }`, true},
		{"field of an embedded type", `type x struct { F secret.T }; type X struct { x }`, true},
		{"field of an unexported type", `type x struct { F secret.T }; func F() x { panic(0) }`, true},
		{"interface", `type X interface { M() secret.T }`, true},
		{"embedded interface", `type X interface { secret.I }`, true},
		{"variable", `var V = secret.T{}`, true},
		{"alias", `type X = secret.T`, true},
		{"alias of a slice", `type X = []secret.T`, true},
		{"type argument", `type x[E any] []E; var V x[secret.T]`, true},
		{"constraint", `func F[E secret.I](E) {}`, true},
		{"constraint of a type", `type X[E interface{ *secret.T }] []E`, true},
		{"unexported function", `func f(secret.T) {}`, false},
		{"unexported field", `type X struct { f secret.T }`, false},
		{"unexported method", `type X int; func (X) m(secret.T) {}`, false},
		{"definition", `type X secret.T`, false},
		{"recursive", `type X struct { Next *X }; func (*X) M() []X { return nil }`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := parse(t, Module+"/open", pkgs, "package open; import \""+secret.Types.Path()+"\"\nvar _ secret.T\n"+row.decl)
			if got := p.Leaks(); (len(got) > 0) != row.leaks {
				t.Errorf("got %q, want some: %v", got, row.leaks)
			}
		})
	}
}

func TestCycles(t *testing.T) {
	p := parse(t, Module+"/open", nil,
		`package open; func A(x X) { B(); x.m() }`,
		`package open; func B() { C() }; type X struct{ f Y }; const K = 1`,
		`package open; func C() { A(X{}); _ = K }; type Y int`,
		`package open; func (x X) m() { _ = x.f; d() }; func d() {}`,
		`package open; func e() { d() }`,
	)
	if got, want := p.Calls().Cycles(), [][]string{{"a.go", "b.go", "c.go"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("calls: got %v, want %v", got, want)
	}
	if got, want := p.References().Cycles(), [][]string{{"a.go", "b.go", "c.go", "d.go"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("references: got %v, want %v", got, want)
	}
}

func TestUndocumented(t *testing.T) {
	p := parse(t, Module+"/open", nil, `package open

func A() {}

// B is documented.
func B() {}

type C struct {
	D, E int
	F    int // documented
	// G is documented.
	G []struct{ H int }
	i int
}

const (
	J = 1
	K = 2 // documented
)

// L is documented.
type L interface {
	M()
	Error() string
}
`)
	var got []string
	for _, id := range append(Undocumented(p.Files[0]), UndocumentedFields(p.Files[0])...) {
		got = append(got, id.Name)
	}
	if want := []string{"A", "C", "J", "D", "E", "H", "M"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
