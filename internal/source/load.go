// Package source reads the project's own Go code, with its types, for the
// rules of arch_test.go and the numbers of internal/metrics. It needs the go
// command and no network. Only tests and tools import it.
package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Module is the import path of the project.
const Module = "github.com/tegmen-dev/tegmen"

// Package is one package of the project as one operating system builds it,
// without its tests.
type Package struct {
	// Path is the import path without the module: "engine".
	Path string
	// Fset resolves the positions of Files.
	Fset *token.FileSet
	// Files are its parsed files, comments included.
	Files []*ast.File
	// Types is the checked package.
	Types *types.Package
	// Info says what each identifier refers to.
	Info *types.Info
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// Load lists and type-checks the packages that match patterns, relative to dir,
// as they are built for goos without cgo. Imports come from the go command's
// build cache.
func Load(dir, goos string, patterns ...string) ([]*Package, error) {
	all, err := list(dir, goos, patterns)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var pkgs []*Package
	for _, l := range all {
		if l.DepOnly || len(l.GoFiles) == 0 {
			continue
		}
		p, err := check(fset, imports, l)
		if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

func list(dir, goos string, patterns []string) ([]listed, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list: %s", exit.Stderr)
	} else if err != nil {
		return nil, err
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}

func check(fset *token.FileSet, imports types.Importer, l listed) (*Package, error) {
	p := &Package{
		Path: strings.TrimPrefix(l.ImportPath, Module+"/"),
		Fset: fset,
		Info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}},
	}
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, f)
	}
	conf := types.Config{Importer: imports, Sizes: types.SizesFor("gc", runtime.GOARCH)}
	var err error
	p.Types, err = conf.Check(l.ImportPath, fset, p.Files, p.Info)
	return p, err
}

// Public reports whether programs outside the module can import p.
func (p *Package) Public() bool {
	return p.Types.Name() != "main" && !strings.Contains("/"+p.Path+"/", "/internal/") &&
		!strings.HasPrefix(p.Path, "test/") && p.Path != Module
}

// file names the file that pos is in, without its directory.
func (p *Package) file(pos token.Pos) string {
	return filepath.Base(p.Fset.Position(pos).Filename)
}
