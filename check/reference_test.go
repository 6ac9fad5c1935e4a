package check_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/check"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// reference applies the rules to Python's own syntax tree of every third module of its
// library, and prints a list a line: the file, and what is found.
const reference = `
import ast, glob, json, os, sys
imports, builtins, attributes = map(set, json.loads(sys.argv[1]))
for name in sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[::3]:
    try: tree = ast.parse(open(name, "rb").read().decode())
    except (SyntaxError, ValueError): continue
    found = []
    for n in ast.walk(tree):
        if isinstance(n, ast.Import): modules = [a.name for a in n.names]
        elif isinstance(n, ast.ImportFrom): modules = ["." * bool(n.level) + (n.module or "")]
        else: modules = []
        for m in modules:
            m = m[:1] + m[1:].split(".")[0]
            if m not in imports: found.append("import of %s is not allowed" % m)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in builtins:
            found.append("call of %s() is not allowed" % n.func.id)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "os" and n.attr in attributes:
            found.append("os." + n.attr)
    print(json.dumps([name, *found]))
`

// What the lexer sees in real code is what Python's parser sees.
func TestPythonAgreesWithItsParser(t *testing.T) {
	testenv.Need(t, testenv.Program("python3"))
	r := check.DefaultPython()
	rules, err := json.Marshal([][]string{r.Imports, r.Builtins, r.OS})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "-W", "ignore", "-c", reference, string(rules)).Output()
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(` \(line \d+\)$`)
	use := regexp.MustCompile(`^(?:call|use) of (os\.\w+)(?:\(\))? is not allowed$`)
	files := 0
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); files++ {
		var want []string
		if err := json.Unmarshal(s.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(want[0])
		if err != nil {
			t.Fatal(err)
		}
		got := []string{want[0]}
		var found *check.Error
		if errors.As(check.Python(string(source)), &found) {
			for _, f := range found.Found {
				got = append(got, use.ReplaceAllString(line.ReplaceAllString(f, ""), "$1"))
			}
		}
		slices.Sort(got[1:])
		slices.Sort(want[1:])
		if !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", want[0], strings.Join(got[1:], "\n     "), strings.Join(want[1:], "\n     "))
		}
	}
	if files < 50 {
		t.Errorf("%d files: python has no library here?", files)
	}
}
