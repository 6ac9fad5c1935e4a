//go:build linux

package attack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// escapeDir holds the escape corpus, a program for each case. Its header describes the case.
const escapeDir = "testdata/escape"

// escapeCase is something that a guest must not be able to do.
type escapeCase struct {
	name string // of its file, without the extension; of the test, for one in Go

	what  string // the act
	stops string // attacks that need it
	row   string // the section of the table it stands in

	outside  verdict // on the host, as the account that guests have
	unproven verdict // on a host where it cannot be shown to work
	inside   verdict
	landlock verdict // where there are no namespaces

	same   string   // why outside and inside may be the same word
	arch   string   // "" is any
	needs  []string // set-up by the harness: terminal, own-terminal; or the machine: root, ipv6, glibc, a program
	own    bool     // has a sandbox of its own, for it would disturb others
	inTest bool     // it is a test in Go
}

// verdict is the words that an act may end with, and a remark.
type verdict struct {
	words []string
	note  string
}

func parseVerdict(s string) verdict {
	words, note, _ := strings.Cut(s, "(")
	v := verdict{note: strings.TrimSuffix(note, ")")}
	// Remarks may stand between the words.
	for note != "" {
		_, rest, _ := strings.Cut(note, ")")
		var more string
		more, note, _ = strings.Cut(rest, "(")
		words += " " + more
	}
	v.words = strings.Fields(words)
	return v
}

// has reports whether all words of an output are among those of the verdict.
func (v verdict) has(output string) bool {
	got := strings.Fields(output)
	return len(got) > 0 && !slices.ContainsFunc(got, func(w string) bool { return !slices.Contains(v.words, w) })
}

func (v verdict) String() string { return strings.Join(v.words, " or ") }

// escapeCases reads all headers; those of tests in Go are in one file.
func escapeCases(t testing.TB) (cases []escapeCase) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(escapeDir, "*.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var header strings.Builder
		for line := range strings.Lines(string(b)) {
			comment, ok := strings.CutPrefix(line, "# ")
			if !ok {
				break
			}
			header.WriteString(comment)
		}
		c, err := parseCase(header.String())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.name = strings.TrimSuffix(filepath.Base(name), ".py")
		cases = append(cases, c)
	}
	b, err := os.ReadFile(filepath.Join(escapeDir, "tests.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, stanza := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
		c, err := parseCase(stanza)
		if err != nil {
			t.Fatalf("tests.txt: %v\n%s", err, stanza)
		}
		c.inTest = true
		cases = append(cases, c)
	}
	return cases
}

func parseCase(header string) (c escapeCase, err error) {
	for line := range strings.Lines(header) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			return c, fmt.Errorf("%q is not \"key: value\"", line)
		}
		switch key {
		case "test":
			c.name = value
		case "what":
			c.what = value
		case "stops":
			c.stops = value
		case "row":
			c.row = value
		case "outside":
			c.outside = parseVerdict(value)
		case "unproven":
			c.unproven = parseVerdict(value)
		case "inside":
			c.inside = parseVerdict(value)
		case "landlock":
			c.landlock = parseVerdict(value)
		case "same":
			c.same = value
		case "arch":
			c.arch = value
		case "needs":
			c.needs = strings.Fields(value)
		case "own":
			c.own = value == "yes"
		default:
			return c, fmt.Errorf("unknown key %q", key)
		}
	}
	return c, nil
}

// A case with the same verdict outside and inside could not fail, so it must say why. A row that names a test must
// name one that exists.
func TestEscapeCorpusHeaders(t *testing.T) {
	tests := testNames(t)
	cases := escapeCases(t)
	for _, c := range cases {
		for key, missing := range map[string]bool{
			"what": c.what == "", "stops": c.stops == "", "row": c.row == "",
			"inside": len(c.inside.words) == 0, "landlock": len(c.landlock.words) == 0,
			"outside": len(c.outside.words) == 0 && !c.inTest,
		} {
			if missing {
				t.Errorf("%s: no %s", c.name, key)
			}
		}
		if slices.ContainsFunc(c.outside.words, func(w string) bool {
			return slices.Contains(c.inside.words,
				w)
		}) == (c.same == "") {
			t.Errorf("%s: %s outside, %s inside, and why they are the same: %q", c.name, c.outside, c.inside, c.same)
		}
		if slices.Contains(c.inside.words, "ok") {
			t.Errorf("%s: works inside", c.name)
		}
		if slices.Contains(c.landlock.words, "ok") && c.landlock.note == "" {
			t.Errorf("%s: works without namespaces, and does not say why", c.name)
		}
		if !slices.Contains(escapeRows, c.row) {
			t.Errorf("%s: %q is no section of the table", c.name, c.row)
		}
		if c.inTest && !slices.Contains(tests, c.name) {
			t.Errorf("%s: there is no such test", c.name)
		}
	}
	if len(cases) < 90 {
		t.Errorf("%d cases", len(cases))
	}
}

// testNames lists the tests of the module.
func testNames(t *testing.T) (names []string) {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(b), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// forThisMachine leaves out the cases of other architectures.
func forThisMachine(cases []escapeCase) []escapeCase {
	return slices.DeleteFunc(slices.Clone(cases), func(c escapeCase) bool {
		return c.inTest || c.arch != "" && c.arch != runtime.GOARCH
	})
}
