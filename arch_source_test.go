package arch_test

import (
	"go/types"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/source"
)

// loaded are the packages as each system builds them.
var loaded = map[string]func() ([]*source.Package, error){
	"linux":  sync.OnceValues(func() ([]*source.Package, error) { return source.Load(".", "linux", "./...") }),
	"darwin": sync.OnceValues(func() ([]*source.Package, error) { return source.Load(".", "darwin", "./...") }),
}

func eachPackage(t *testing.T, f func(*testing.T, *source.Package)) {
	for goos, load := range loaded {
		t.Run(goos, func(t *testing.T) {
			pkgs, err := load()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pkgs {
				f(t, p)
			}
		})
	}
}

// An exported name is usable from outside, or is not exported.
func TestExportedSignaturesHaveNoInternalTypes(t *testing.T) {
	eachPackage(t, func(t *testing.T, p *source.Package) {
		if !p.Public() {
			return
		}
		for _, leak := range p.Leaks() {
			t.Error(leak)
		}
	})
}

// Every exported name, every exported field and every method of an exported
// interface says what it is.
func TestExportedNamesAreDocumented(t *testing.T) {
	eachPackage(t, func(t *testing.T, p *source.Package) {
		for _, f := range p.Files {
			for _, id := range append(source.Undocumented(f), source.UndocumentedFields(f)...) {
				t.Errorf("%s: %s has no comment", p.Fset.Position(id.Pos()), id.Name)
			}
		}
	})
}

// engine decides, runs and reports; the packages below it make the system calls.
// Of internal/launch it takes what has no effect: the types of errors, which it
// translates, and the names of calls that a seccomp policy must allow.
func TestEngineMakesNoSystemCall(t *testing.T) {
	fromLaunch := []string{"UnsupportedError", "StepError", "ErrUnsupported", "GateCalls"}
	eachPackage(t, func(t *testing.T, p *source.Package) {
		if p.Path != "engine" {
			return
		}
		for _, imp := range p.Types.Imports() {
			if path := imp.Path(); path == "os/exec" || strings.HasPrefix(path, "golang.org/x/sys") {
				t.Errorf("engine imports %s", path)
			}
		}
		for id, obj := range p.Info.Uses {
			if obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
				continue // a method or field: of an error, of a signal
			}
			_, calls := obj.(*types.Func)
			switch obj.Pkg().Path() {
			case "syscall":
				if calls {
					t.Errorf("%s: syscall.%s", p.Fset.Position(id.Pos()), obj.Name())
				}
			case source.Module + "/internal/launch":
				if !slices.Contains(fromLaunch, obj.Name()) {
					t.Errorf("%s: launch.%s", p.Fset.Position(id.Pos()), obj.Name())
				}
			}
		}
	})
}
