package test

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// numbers are those of the behaviours, by the letter of the system.
var numbers = []struct {
	letter      string
	first, last int
}{{"P", 1, 112}, {"O", 1, 20}, {"O", 38, 43}, {"C", 1, 61}, {"A", 79, 199}, {"X", 1, 26}}

// Each behaviour of the predecessors has a test that is there, or a reason.
func TestPredecessorsTable(t *testing.T) {
	left := make(map[string]bool)
	for _, n := range numbers {
		for i := n.first; i <= n.last; i++ {
			left[fmt.Sprintf("%s%02d", n.letter, i)] = true
		}
	}
	tests := make(testFiles)
	for _, l := range tableLines(t, "testdata/predecessors.txt") {
		id, rest, _ := strings.Cut(l, " ")
		rest = strings.TrimSpace(rest)
		if !left[id] {
			t.Errorf("%s is there twice, or none of the behaviours", id)
		}
		delete(left, id)
		if why, ok := strings.CutPrefix(rest, "not applicable: "); ok {
			if len(strings.Fields(why)) < 5 {
				t.Errorf("%s: %q is no reason", id, why)
			}
			continue
		}
		if what, ok := strings.CutPrefix(rest, "later: "); ok {
			if !slices.Contains([]string{"pool", "egress", "images"}, what) {
				t.Errorf("%s: nothing comes later with %s", id, what)
			}
			continue
		}
		if rest == "" {
			t.Errorf("%s has no test", id)
		}
		for name := range strings.FieldsSeq(rest) {
			if path.Base(name) != id {
				t.Errorf("%s: %s is not named by it", id, name)
			}
			if err := tests.find(name); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
	for id := range left {
		t.Errorf("%s is not in the table", id)
	}
}

// Each capability that one of them has, or that all should have, has a test.
func TestCapabilitiesTable(t *testing.T) {
	// What the version after this one is to have.
	later := []string{"pool", "egress", "images", "cgroups", "microVM"}
	tests, seen := make(testFiles), make(map[string]bool)
	for _, l := range tableLines(t, "testdata/capabilities.txt") {
		row := strings.Split(l, "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if len(row) != 3 || seen[row[0]] {
			t.Errorf("%s: want a name that is new, a word and tests", l)
			continue
		}
		seen[row[0]] = true
		what, isLater := strings.CutPrefix(row[1], "later: ")
		if isLater && !slices.Contains(later, what) || !isLater && (row[1] != "yes" || row[2] == "") {
			t.Errorf("%s: %s", row[0], row[1])
		}
		for name := range strings.FieldsSeq(row[2]) {
			if err := tests.find(name); err != nil {
				t.Errorf("%s: %v", row[0], err)
			}
		}
	}
	if len(seen) != 58 {
		t.Errorf("%d rows, want 58", len(seen))
	}
}

// tableLines are those that are no comments.
func tableLines(t *testing.T, name string) (lines []string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		if l := s.Text(); l != "" && !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// testFiles are the test functions of a directory, by "directory/TestName", each
// with the text of the literals in its file: subtests are named by some.
type testFiles map[string]string

// find looks for a test, by "directory/TestName/P01", in which some literal of the
// file has to begin with P01, or with such names and then P01; or by
// "directory/TestName".
func (f testFiles) find(name string) error {
	dir, test := path.Split(name)
	id := ""
	if !strings.HasPrefix(test, "Test") && !strings.HasPrefix(test, "Benchmark") {
		id = test
		dir, test = path.Split(path.Clean(dir))
	}
	dir = path.Clean(dir)
	if _, read := f[dir]; !read {
		f[dir] = ""
		if err := f.read(dir); err != nil {
			return err
		}
	}
	text, ok := f[dir+"/"+test]
	switch {
	case !ok:
		return fmt.Errorf("there is no test %s in %s", test, dir)
	case id != "" && !regexp.MustCompile(`(?m)^(?:[POCAX]\d{2,3} )*`+id+`\b`).MatchString(text):
		return fmt.Errorf("nothing is named %s in the file of %s", id, test)
	}
	return nil
}

func (f testFiles) read(dir string) error {
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		var literals strings.Builder
		ast.Inspect(tree, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil {
					literals.WriteString(s + "\n")
				}
			}
			return true
		})
		for _, d := range tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				f[dir+"/"+fn.Name.Name] = literals.String()
			}
		}
	}
	return nil
}
