package arch_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/source"
)

// A knot is files of one package that call each other's functions or methods in
// a circle, so none of them can be read before the others.
type knot struct{ files, why string }

// knots are those that are left, by package, each with its reason. The list only
// shrinks: a file that is not in it, or need not be any more, fails the test.
var knots = map[string]knot{
	"internal/wire":    {"call.go link.go reader.go request.go run.go", "a link, its run and their calls refuse and close each other"},
	"internal/procbox": {"machine.go process.go", "a box ends its processes, which use its tree"},
	"cgroup":           {"group_linux.go parent_linux.go", "a parent removes its groups in the background"},
	"agent":            {"files.go list.go placeholders.go", "an error is explained by a listing, which is made by a command that may fail"},
	"cmd/tegmen":       {"completion.go main.go", "the table of subcommands lists its own completion"},
}

// The files of a package call each other in one direction: from what a caller
// asks for down to how it is done. Functions and methods count. Types,
// constants and variables do not: they are the words that files share, and a
// type's methods may stand in the files of their topics.
func TestFilesFormNoCycle(t *testing.T) {
	inKnot := map[string]map[string]bool{} // by package: files that are in one on any system
	eachPackage(t, func(t *testing.T, p *source.Package) {
		allowed := strings.Fields(knots[p.Path].files)
		if inKnot[p.Path] == nil {
			inKnot[p.Path] = map[string]bool{}
		}
		calls := p.Calls()
		for _, cycle := range calls.Cycles() {
			for _, file := range cycle {
				inKnot[p.Path][file] = true
			}
			if extra := slices.DeleteFunc(slices.Clone(cycle), func(f string) bool { return slices.Contains(allowed, f) }); len(extra) > 0 {
				t.Errorf("%s: %v call each other in a circle; %v may not:%s", p.Path, cycle, extra, arrows(calls, cycle))
			}
		}
	})
	for _, path := range slices.Sorted(maps.Keys(knots)) {
		for _, file := range strings.Fields(knots[path].files) {
			if !inKnot[path][file] {
				t.Errorf("%s/%s is in no cycle: remove it from knots", path, file)
			}
		}
	}
}

// arrows prints who calls what within a cycle.
func arrows(calls source.Uses, cycle []string) string {
	var b strings.Builder
	for _, from := range cycle {
		for _, to := range cycle {
			if names := calls[from][to]; len(names) > 0 {
				b.WriteString("\n\t" + from + " -> " + to + ": " + strings.Join(names, " "))
			}
		}
	}
	return b.String()
}
