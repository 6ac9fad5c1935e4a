package source

import (
	"go/types"
	"maps"
	"slices"
)

// Uses says which files use which others of the same package, and by what names.
type Uses map[string]map[string][]string

// Calls returns which files of p mention functions or methods of other files.
// Types, constants and variables are left out: they are the words that files
// share, and the methods of a type may stand in the files of their topics.
func (p *Package) Calls() Uses {
	return p.uses(func(obj types.Object) bool {
		_, isFunc := obj.(*types.Func)
		return isFunc
	})
}

// References returns which files of p mention anything that other files
// declare: functions, methods, types, fields, constants, variables.
func (p *Package) References() Uses {
	return p.uses(func(obj types.Object) bool {
		f, isFunc := obj.(*types.Func)
		v, isVar := obj.(*types.Var)
		return isFunc && f.Signature().Recv() != nil || isVar && v.IsField() || obj.Parent() == p.Types.Scope()
	})
}

func (p *Package) uses(counts func(types.Object) bool) Uses {
	g := Uses{}
	for id, obj := range p.Info.Uses {
		if obj.Pkg() != p.Types || !counts(obj) {
			continue
		}
		from, to := p.file(id.Pos()), p.file(obj.Pos())
		if from == to {
			continue
		}
		if g[from] == nil {
			g[from] = map[string][]string{}
		}
		if !slices.Contains(g[from][to], obj.Name()) {
			g[from][to] = append(g[from][to], obj.Name())
			slices.Sort(g[from][to])
		}
	}
	return g
}

// Cycles returns the strongly connected components of more than one file.
func (g Uses) Cycles() [][]string {
	t := tarjan{uses: g, index: map[string]int{}, low: map[string]int{}}
	for _, file := range slices.Sorted(maps.Keys(g)) {
		if t.index[file] == 0 {
			t.visit(file)
		}
	}
	return t.found
}

// tarjan is the state of Tarjan's algorithm.
type tarjan struct {
	uses       Uses
	index, low map[string]int
	stack      []string
	found      [][]string
}

func (t *tarjan) visit(v string) {
	t.index[v] = len(t.index) + 1
	t.low[v] = t.index[v]
	t.stack = append(t.stack, v)
	for _, w := range slices.Sorted(maps.Keys(t.uses[v])) {
		if t.index[w] == 0 {
			t.visit(w)
			t.low[v] = min(t.low[v], t.low[w])
		} else if slices.Contains(t.stack, w) {
			t.low[v] = min(t.low[v], t.index[w])
		}
	}
	if t.low[v] != t.index[v] {
		return
	}
	i := slices.Index(t.stack, v)
	c := slices.Sorted(slices.Values(t.stack[i:]))
	t.stack = t.stack[:i]
	if len(c) > 1 {
		t.found = append(t.found, c)
	}
}

// InCycles counts the files that are in a cycle.
func InCycles(g Uses) (n int) {
	for _, c := range g.Cycles() {
		n += len(c)
	}
	return n
}
