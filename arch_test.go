// Package arch_test checks the rules of the house that a machine can check.
// ARCHITECTURE.md explains them.
package arch_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

var update = flag.Bool("update", false, "rewrite testdata/linked.txt")

const module = "github.com/tegmen-dev/tegmen"

// libraries are what engine and below may link besides the standard library,
// each with its reason.
var libraries = map[string]string{
	"golang.org/x/sys/unix": "system calls and their constants",

	"github.com/rogpeppe/go-internal/diff": "the unified diff of two texts, in O(n log n) whatever a guest wrote",

	"github.com/google/jsonschema-go/jsonschema": "schemas of tools from Go types, and validation, as MCP's Go SDK has it",

	"github.com/creack/pty": "pseudo-terminals of macOS, whose ioctls take no part in anything else here",

	"github.com/seccomp/libseccomp-golang": "compiles seccomp policies, behind the tag libseccomp",
}

// layers orders the packages; each may import what is in a lower one. Those of
// one layer do not import each other.
var layers = [][]string{
	{"internal/mountinfo"},
	{
		"internal/launch", "internal/lines", "internal/sample", "internal/jsoncount", "rootfs",
		"internal/toolcall", "internal/fakehost", "internal/source",
	},
	{
		"ns", "seccomp", "cgroup", "broker", "guest", "check", "workspace", "seatbelt",
		"internal/bootstrap",
	},
	{"internal/wire", "internal/setup", "internal/privatedir", "internal/protect"},
	{"internal/box", "internal/holdback"},
	{"internal/handoff"},
	{"internal/linuxbox", "internal/procbox"},
	{"engine"},
	{"agent", "internal/testbox"},
	{"cmd/tegmen", "seccomp/generate", "internal/vmtest", "internal/metrics", "example/tools"},
	{"test/engine", "test/workspace", "test/attack", "test/conformance", "test/bench", "test/compat", "test/mac", "test/tools"},
}

type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func layerOf(path string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, strings.TrimPrefix(path, module+"/")) })
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath == module || p.ImportPath == module+"/internal/testenv" {
			continue
		}
		layer := layerOf(p.ImportPath)
		if layer < 0 {
			t.Errorf("%s: in no layer of arch_test.go", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			switch {
			case strings.HasPrefix(imp, module):
				if l := layerOf(imp); l >= layer {
					t.Errorf("%s imports %s, which is not below it", p.ImportPath, imp)
				}
			case strings.Contains(strings.Split(imp, "/")[0], ".") && libraries[imp] == "":
				t.Errorf("%s imports %s, which arch_test.go gives no reason for", p.ImportPath, imp)
			}
		}
	}
}

// Everything that is linked into the command is touched at each start, so a
// new package has to be seen and wanted.
func TestLinkedPackagesGolden(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./cmd/tegmen")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		return strings.Contains(p, "internal/") || strings.HasPrefix(p, "vendor/") || p == "unsafe"
	})
	slices.Sort(linked)
	testenv.Golden(t, "testdata/linked.txt", strings.Join(linked, "\n")+"\n", *update)
	for _, heavy := range []string{"net", "net/http", "text/template", "os/user", "crypto/tls"} {
		if slices.Contains(linked, heavy) {
			t.Errorf("cmd/tegmen links %s, which costs every start", heavy)
		}
	}
}

func TestEachPackageHasOneComment(t *testing.T) {
	for _, p := range packages(t) {
		var with []string
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				with = append(with, name)
			}
		}
		if len(p.GoFiles) > 0 && len(with) != 1 {
			t.Errorf("%s: package comments in %v, want one", p.ImportPath, with)
		}
	}
}

func TestFilesAreShortAndNamed(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if slices.Contains([]string{"util", "common", "helpers", "types", "misc", "base", "manager"}, e.Name()) {
				t.Errorf("%s: a folder whose name says nothing", path)
			}
			if strings.HasPrefix(e.Name(), ".") && path != "." || path == "bin" {
				return filepath.SkipDir // not the project's, as for the go command, or made by make
			}
			return nil
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".s" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n := 0
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			n++
		}
		if n > 400 {
			t.Errorf("%s: %d lines, more than 400", path, n)
		}
		if bytes.Contains(b, []byte("TODO")) && !bytes.Contains(b, []byte("arch_test")) {
			t.Errorf("%s: a TODO", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
