package source

import (
	"fmt"
	"go/types"
	"strings"
)

// Leaks returns the exported names of p whose signatures or fields reach a type
// of an internal package, which programs outside the module cannot name.
func (p *Package) Leaks() []string {
	l := &leaks{pkg: p.Types, seen: map[types.Type]bool{}}
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		obj := scope.Lookup(name)
		if !obj.Exported() {
			continue
		}
		if t, ok := obj.(*types.TypeName); ok && !t.IsAlias() {
			l.declared(name, obj.Type())
			continue
		}
		l.reach(name, obj.Type())
	}
	return l.found
}

type leaks struct {
	pkg   *types.Package
	seen  map[types.Type]bool
	found []string
}

// reach follows t as far as a program that holds a value of it gets.
func (l *leaks) reach(where string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		l.name(where, t.Obj())
		l.arguments(where, t.TypeArgs())
		l.reach(where, t.Rhs())
	case *types.Named:
		l.name(where, t.Obj())
		l.arguments(where, t.TypeArgs())
		if t.Obj().Pkg() == l.pkg && !t.Obj().Exported() {
			l.declared(where+" ("+t.Obj().Name()+")", t.Origin())
		}
	case *types.TypeParam:
		l.declared(where, t)
	case *types.Signature:
		l.signature(where, t)
	case *types.Tuple:
		for v := range t.Variables() {
			l.reach(where, v.Type())
		}
	case *types.Map:
		l.reach(where, t.Key())
		l.reach(where, t.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		l.reach(where, t.Elem())
	case *types.Struct:
		l.fields(where, t)
	case *types.Interface:
		l.embedded(where, t)
	case *types.Union:
		for term := range t.Terms() {
			l.reach(where, term.Type())
		}
	}
}

func (l *leaks) name(where string, obj *types.TypeName) {
	if obj.Pkg() != nil && strings.Contains(obj.Pkg().Path()+"/", "/internal/") &&
		strings.HasPrefix(obj.Pkg().Path(), Module) {
		l.found = append(l.found, fmt.Sprintf("%s.%s: %s.%s", l.pkg.Name(), where, obj.Pkg().Path(), obj.Name()))
	}
}

// declared follows what the type t itself offers: its fields and methods,
// those of embedded types included.
func (l *leaks) declared(where string, t types.Type) {
	if l.seen[t] {
		return
	}
	l.seen[t] = true
	if named, ok := t.(*types.Named); ok {
		l.parameters(where, named.TypeParams())
	}
	l.reach(where, t.Underlying())
	methods := types.NewMethodSet(types.NewPointer(t))
	if types.IsInterface(t) {
		methods = types.NewMethodSet(t)
	}
	for m := range methods.Methods() {
		if m.Obj().Exported() {
			l.reach(where+"."+m.Obj().Name(), m.Type())
		}
	}
}

func (l *leaks) signature(where string, t *types.Signature) {
	l.parameters(where, t.TypeParams())
	l.reach(where, t.Params())
	l.reach(where, t.Results())
}

func (l *leaks) fields(where string, t *types.Struct) {
	for f := range t.Fields() {
		if f.Exported() || f.Embedded() {
			l.reach(where+"."+f.Name(), f.Type())
		}
	}
}

func (l *leaks) embedded(where string, t *types.Interface) {
	for m := range t.ExplicitMethods() {
		if m.Exported() {
			l.reach(where+"."+m.Name(), m.Type())
		}
	}
	for e := range t.EmbeddedTypes() {
		l.reach(where, e)
	}
}

func (l *leaks) parameters(where string, params *types.TypeParamList) {
	for p := range params.TypeParams() {
		l.reach(where, p.Constraint())
	}
}

func (l *leaks) arguments(where string, args *types.TypeList) {
	for a := range args.Types() {
		l.reach(where, a)
	}
}
