package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// lower turns a filter into an equivalent one that is shorter and faster: a decision
// diagram that examines each word once, by a balanced tree of ranges, and shares equal
// parts.
//
// It executes the filter symbolically. Where the outcome of a test is not known, it
// splits the word's possible values into ranges that no test of the filter
// distinguishes, and continues with each. The result is exact for all values.
func lower(f Filter) (Filter, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	l := lowering{f: f, cuts: cuts(f), shared: make(map[string]*node)}
	root := l.run(0, variable{}, nil)
	if l.steps > maxSteps {
		return nil, errTooComplex
	}
	var a assembler
	a.labels = make(map[*node]int)
	a.node(root)
	if len(a.code) > 4096 {
		return nil, errTooComplex
	}
	slices.Reverse(a.code)
	return Filter(a.code), nil
}

var errTooComplex = errors.New("seccomp: the policy is too complex to lower")

// maxSteps bounds the work on a hostile policy.
const maxSteps = 5_000_000

// variable is the operand of a test: a word, or some bits of one.
type variable struct{ off, mask uint32 }

// span is a range of values, both ends included.
type span struct{ lo, hi uint32 }

// fact limits a variable to a range.
type fact struct {
	v variable
	span
}

// node is a node of the diagram: a result, or a choice by ranges of a variable.
type node struct {
	id    string
	ret   uint32
	v     variable
	lows  []uint32 // where each range begins; the first is 0
	nexts []*node  // nil: ret
}

type lowering struct {
	f      Filter
	cuts   map[variable][]uint32
	shared map[string]*node
	steps  int
}

// test expresses a conditional jump as the range of a variable for which it is taken.
func test(i Insn, acc variable) (variable, span, bool) {
	switch i.Code {
	case opEq:
		return acc, span{i.K, i.K}, true
	case opGe:
		return acc, span{i.K, ^uint32(0)}, true
	case opGt:
		if i.K == ^uint32(0) {
			return acc, span{1, 0}, true // never
		}
		return acc, span{i.K + 1, ^uint32(0)}, true
	case opSet:
		return variable{acc.off, acc.mask & i.K}, span{1, ^uint32(0)}, true
	}
	return acc, span{}, false
}

// cuts lists, for each variable, the values at which the outcome of some test changes.
func cuts(f Filter) map[variable][]uint32 {
	out := make(map[variable][]uint32)
	// What the accumulator may hold at each instruction; jumps lead only forward.
	held := make([][]variable, len(f)+1)
	add := func(pc int, v variable) {
		if !slices.Contains(held[pc], v) {
			held[pc] = append(held[pc], v)
		}
	}
	held[0] = []variable{{}}
	for pc, i := range f {
		for _, acc := range held[pc] {
			switch i.Code {
			case opLoad:
				add(pc+1, variable{i.K, ^uint32(0)})
			case opAnd:
				add(pc+1, variable{acc.off, acc.mask & i.K})
			case opJump:
				add(pc+1+int(i.K), acc)
			case opRet:
			default:
				v, s, _ := test(i, acc)
				if s.lo > 0 && s.lo <= s.hi {
					out[v] = append(out[v], s.lo)
				}
				if s.hi != ^uint32(0) && s.lo <= s.hi {
					out[v] = append(out[v], s.hi+1)
				}
				add(pc+1+int(i.JT), acc)
				add(pc+1+int(i.JF), acc)
			}
		}
	}
	for v := range out {
		slices.Sort(out[v])
		out[v] = slices.Compact(out[v])
	}
	return out
}

// run continues at an instruction with the accumulator's variable and the known facts.
func (l *lowering) run(pc int, acc variable, known []fact) *node {
	for {
		if l.steps++; l.steps > maxSteps {
			return &node{}
		}
		i := l.f[pc]
		switch i.Code {
		case opRet:
			return l.share(&node{id: fmt.Sprint("=", i.K), ret: i.K})
		case opLoad:
			acc = variable{i.K, ^uint32(0)}
			pc++
			continue
		case opAnd:
			acc.mask &= i.K
			pc++
			continue
		case opJump:
			pc += 1 + int(i.K)
			continue
		}
		v, taken, _ := test(i, acc)
		is := span{0, v.mask}
		at := slices.IndexFunc(known, func(k fact) bool { return k.v == v })
		if at >= 0 {
			is = known[at].span
		}
		switch {
		case taken.lo > taken.hi || is.hi < taken.lo || is.lo > taken.hi:
			pc += 1 + int(i.JF)
		case is.lo >= taken.lo && is.hi <= taken.hi:
			pc += 1 + int(i.JT)
		default:
			rest := slices.DeleteFunc(slices.Clone(known), func(k fact) bool { return k.v == v })
			return l.choose(pc, acc, v, is, rest)
		}
	}
}

// choose continues at an instruction separately for each range of a variable.
func (l *lowering) choose(pc int, acc, v variable, is span, known []fact) *node {
	n := &node{v: v}
	lo := is.lo
	for _, cut := range append(slices.Clone(l.cuts[v]), 0) {
		last := cut == 0
		if !last && (cut <= lo || cut > is.hi) {
			continue
		}
		hi := is.hi
		if !last {
			hi = cut - 1
		}
		next := l.run(pc, acc, append(slices.Clone(known), fact{v, span{lo, hi}}))
		if k := len(n.nexts); k == 0 || n.nexts[k-1] != next {
			n.lows, n.nexts = append(n.lows, lo), append(n.nexts, next)
		}
		lo = cut
	}
	if len(n.nexts) == 1 {
		return n.nexts[0]
	}
	n.lows[0] = 0 // values below is.lo do not get here
	n.mergeBits()
	var id strings.Builder
	fmt.Fprint(&id, n.v)
	for k, next := range n.nexts {
		fmt.Fprintf(&id, " %d:%p", n.lows[k], next)
	}
	n.id = id.String()
	return l.share(n)
}

// mergeBits merges tests of single bits of a word that lead to the same result.
func (n *node) mergeBits() {
	if len(n.nexts) != 2 || n.v.mask&(n.v.mask-1) != 0 && n.lows[1] != 1 {
		return
	}
	n.lows[1] = 1 // any value of one bit but 0 is the same
	if z := n.nexts[0]; len(z.nexts) == 2 && z.lows[1] == 1 && z.v.off == n.v.off && z.nexts[1] == n.nexts[1] {
		n.v.mask |= z.v.mask
		n.nexts = z.nexts
	}
}

// share returns the first node that equals n, so that equal nodes are identical.
func (l *lowering) share(n *node) *node {
	if old := l.shared[n.id]; old != nil {
		return old
	}
	l.shared[n.id] = n
	return n
}

// assembler writes the program backwards: jumps lead only forward, so a target is
// always written before the jump. A label counts the instructions from the target to
// the end.
type assembler struct {
	code   []Insn // in reverse
	labels map[*node]int
}

func (a *assembler) put(i Insn) int {
	a.code = append(a.code, i)
	return len(a.code)
}

// node returns the label of a node and writes the node if it is new.
func (a *assembler) node(n *node) int {
	if label, ok := a.labels[n]; ok {
		return label
	}
	if n.nexts == nil {
		label := a.put(Insn{Code: opRet, K: n.ret})
		a.labels[n] = label
		return label
	}
	targets := make([]int, len(n.nexts))
	for i := len(n.nexts) - 1; i >= 0; i-- {
		targets[i] = a.node(n.nexts[i])
	}
	switch {
	case len(targets) == 2 && n.lows[1] == 1:
		a.branch(opSet, n.v.mask, targets[1], targets[0])
	case n.v.mask != ^uint32(0):
		a.tree(n.lows, targets) // at least two targets, so a branch comes first
		a.put(Insn{Code: opAnd, K: n.v.mask})
	default:
		a.tree(n.lows, targets)
	}
	label := a.put(Insn{Code: opLoad, K: n.v.off})
	a.labels[n] = label
	return label
}

// tree writes a choice among ranges and returns its label.
func (a *assembler) tree(lows []uint32, targets []int) int {
	switch {
	case len(targets) == 1:
		return targets[0]
	case len(targets) == 3 && targets[0] == targets[2] && lows[2] == lows[1]+1:
		return a.branch(opEq, lows[1], targets[1], targets[0])
	}
	mid := len(targets) / 2
	right := a.tree(lows[mid:], targets[mid:])
	left := a.tree(lows[:mid], targets[:mid])
	return a.branch(opGe, lows[mid], right, left)
}

// branch writes a conditional jump, which reaches 255 instructions.
func (a *assembler) branch(op uint16, k uint32, yes, no int) int {
	yes = a.near(yes, 1) // the next line may insert one more
	no = a.near(no, 0)
	at := len(a.code)
	return a.put(Insn{Code: op, K: k, JT: uint8(at - yes), JF: uint8(at - no)})
}

// near returns a label within reach that leads to the given one.
func (a *assembler) near(label, slack int) int {
	d := len(a.code) - label
	if d+slack <= 255 {
		return label
	}
	if i := a.code[label-1]; i.Code == opRet {
		return a.put(i)
	}
	return a.put(Insn{Code: opJump, K: uint32(d)})
}
