package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A kind is which side of tests : code a file counts on.
type kind int

const (
	neither kind = iota
	production
	tests
)

// testPackages exist for tests and checks only.
var testPackages = []string{
	"internal/testbox", "internal/testenv", "internal/vmtest", "internal/fakehost", "internal/source", "internal/metrics",
}

type file struct {
	path, text string
	kind       kind
	fset       *token.FileSet
	syntax     *ast.File // of Go
}

func (f file) isGo() bool { return f.syntax != nil }

// sources reads all files that git knows, whatever their build tags.
func sources() ([]file, error) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, err
	}
	var files []file
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		k := kindOf(path)
		if k == neither {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f := file{path: path, text: string(text), kind: k, fset: token.NewFileSet()}
		if filepath.Ext(path) == ".go" {
			if f.syntax, err = parser.ParseFile(f.fset, path, text, parser.ParseComments); err != nil {
				return nil, err
			}
		}
		files = append(files, f)
	}
	return files, nil
}

func kindOf(path string) kind {
	dir, ext := filepath.Dir(path), filepath.Ext(path)
	program := slices.Contains([]string{".go", ".s", ".c", ".py", ".js", ".sh", ".txtar"}, ext)
	switch {
	case !program:
		return neither
	case strings.HasSuffix(path, "_test.go"), strings.HasPrefix(path, "test/"), strings.Contains(path, "/testdata/"),
		slices.Contains(testPackages, dir):
		return tests
	}
	return production
}

type function struct {
	at    token.Position
	name  string
	lines int // from func to the closing brace
}

func (f file) functions() []function {
	if !f.isGo() {
		return nil
	}
	var found []function
	for _, d := range f.syntax.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			at := f.fset.Position(d.Pos())
			found = append(found, function{at, d.Name.Name, f.fset.Position(d.End()).Line - at.Line + 1})
		}
	}
	return found
}
