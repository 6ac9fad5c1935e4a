package seatbelt

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// profiles are what the decisions are about.
func profiles() map[string]Config {
	dir := func(name string) Path { return Path{Name: name, Dir: true} }
	file := func(name string) Path { return Path{Name: name} }
	return map[string]Config{
		"nothing": {},
		"job": {
			Read:  []Path{dir("/Users/u/lib"), file("/Users/u/tool.py")},
			Write: []Path{dir("/private/tmp/w"), file("/Users/u/out.txt"), dir("/private/tmp/other")},
			Keep:  []string{"/private/tmp/w/.git/hooks", "/private/tmp/w/.git/config", "/private/tmp/w/.env"},
			Pin:   []string{"/private/tmp/w/src"}, Hidden: []string{"/private/tmp/w/deep/key", "/Users/u/lib/token"},
			Ports: []int{8080, 443, 8080},
		},
		"program":  {Program: "/usr/bin/perl", Launcher: []string{"/bin/sh"}, Write: []Path{dir("/private/tmp/w")}},
		"own":      {Program: "/Users/u/w/bin/tool", Write: []Path{dir("/Users/u/w")}},
		"launcher": {Launcher: []string{"/Users/u/start"}},
		"all": {
			ReadAll: true, Hidden: append(Secrets("/Users/u"), "/Users/u/private"),
			Read: []Path{dir("/System/Volumes/Data/scratch")}, Write: []Path{dir("/Users/u/w")},
		},
		"all, explicit": {ReadAll: true, Hidden: []string{"/Users/u/only"}, Program: "/usr/bin/perl"},
		"home":          {Write: []Path{dir("/Users/u")}, Hidden: Secrets("/Users/u")},
		"hidden above":  {Read: []Path{dir("/Users/u/a/b")}, Hidden: []string{"/Users/u/a"}},
		"terminal":      {Terminal: true},
	}
}

// row is a line of testdata/decisions.txt.
type row struct {
	line  string
	allow bool
	asks  []ask // all of them are to be allowed
}

func rows(t testing.TB, profile string) []row {
	t.Helper()
	text, err := os.ReadFile("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, found := strings.Cut(string(text), "\n-- "+profile+" --\n")
	lines, _, _ = strings.Cut(lines, "\n-- ")
	if !found {
		t.Fatalf("no decisions for %q", profile)
	}
	var all []row
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		said, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest, extension, _ := strings.Cut(rest, " +")
		op, arg, _ := strings.Cut(strings.TrimSpace(rest), " ")
		r := row{line: strings.TrimSpace(line), allow: said == "allow"}
		if op == "rename" {
			i := strings.LastIndex(arg, " /")
			r.asks = []ask{{"file-write-unlink", arg[:i], nil}, {"file-write-create", arg[i+1:], nil}}
		} else {
			r.asks = []ask{{op, arg, []string{extension}}}
		}
		if said != "allow" && said != "deny" {
			t.Fatalf("%s: %s", profile, line)
		}
		all = append(all, r)
	}
	return all
}

// holds tells whether an evaluator says what the row says, by both readings.
func (r row) holds(t testing.TB, e *evaluator) bool {
	t.Helper()
	allLast, allExact := true, true
	for _, a := range r.asks {
		last, exact, err := e.decide(a)
		if err != nil {
			t.Fatalf("%s: %v", r.line, err)
		}
		allLast, allExact = allLast && last, allExact && exact
	}
	return allLast == r.allow && allExact == r.allow
}

func TestDecisions(t *testing.T) {
	total := 0
	for name, c := range profiles() {
		t.Run(name, func(t *testing.T) {
			p, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			e, err := load(p.String(), p.Params())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows(t, name) {
				if !r.holds(t, e) {
					t.Errorf("not so: %s", r.line)
				}
			}
		})
		total += len(rows(t, name))
	}
	if total < 120 {
		t.Errorf("%d rows", total)
	}
}

// Each rule is there for something: without it, without its filters or a kind of
// them, and without each of its operations, some row does not hold.
func TestEachRuleDecides(t *testing.T) {
	missing := make(map[string]bool) // false once a row has shown it
	for name, c := range profiles() {
		b := builder{config: c}
		all, mutants := b.rules(), make(map[string][]rule)
		for i, r := range all {
			with := func(rs ...rule) []rule { return slices.Concat(all[:i], rs, all[i+1:]) }
			mutants["drop: "+r.why] = with()
			if len(r.filters) > 0 {
				mutants["widen: "+r.why] = with(rule{why: r.why, allow: r.allow, ops: r.ops})
			}
			for _, f := range r.filters {
				if !r.allow && f.word != "regex" {
					continue // literal and subpath stand in for one another, in case one of them does not hold
				}
				others := slices.DeleteFunc(slices.Clone(r.filters), func(o filter) bool { return o.word == f.word })
				if len(others) > 0 {
					mutants["without "+f.word+": "+r.why] = with(rule{why: r.why, allow: r.allow, ops: r.ops, filters: others})
				}
			}
			for j, op := range r.ops {
				if len(r.ops) > 1 {
					mutants["without "+op+": "+r.why] = with(rule{r.why, r.allow, slices.Concat(r.ops[:j], r.ops[j+1:]), r.filters})
				}
			}
		}
		for what, rules := range mutants {
			if still, known := missing[what]; known && !still {
				continue
			}
			text := render(rules)
			var params []string
			for _, p := range b.params {
				if key, _, _ := strings.Cut(p, "="); strings.Contains(text, quote(key)) {
					params = append(params, p)
				}
			}
			e, err := load(text, params)
			if err != nil {
				t.Fatal(err)
			}
			missing[what] = !slices.ContainsFunc(rows(t, name), func(r row) bool { return !r.holds(t, e) })
		}
	}
	for what, still := range missing {
		if still {
			t.Errorf("no row needs it: %s", what)
		}
	}
}
