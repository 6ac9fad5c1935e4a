//go:build linux

package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// notThere checks that paths of a workspace lead to nothing.
func notThere(t *testing.T, ws string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(filepath.Join(ws, path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
}

// What one guest has made may be the directory that another sandbox finds, and go again.
func TestHeldBackInADirectoryOfAnotherGuest(t *testing.T) {
	eng := testbox.Open(t)
	ws := empty(t)
	spec := engine.Spec{Keep: true, FS: engine.FS{Workspace: ws}}
	first := testbox.Start(t, eng, spec)
	testbox.Output(t, first, "mkdir -p .vscode/a .claude")
	second := testbox.Start(t, eng, spec)
	testbox.Output(t, first, "rm -r .vscode .claude")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	testbox.Output(t, second, "mkdir -p .vscode .claude && echo >.vscode/tasks.json && echo >.claude/settings.json")
	notThere(t, ws, ".vscode/tasks.json", ".claude/settings.json")
}

// Where the store cannot be written to, nothing has a name that a program of the host looks for.
func TestHeldBackWithoutAStore(t *testing.T) {
	ws := empty(t)
	eng := testbox.OpenOn(t, func(h *engine.Host) { h.HeldDir = filepath.Join(os.DevNull, "held") })
	res, err := testbox.Start(t, eng, engine.Spec{FS: engine.FS{Workspace: ws}}).Command("sh", "-c",
		"echo mine >.mcp.json; mkdir .vscode; echo >.vscode/tasks.json").Run()
	if err == nil || !strings.Contains(err.Error(), ".mcp.json.held") {
		t.Errorf("%+v, %v", res, err)
	}
	notThere(t, ws, ".mcp.json", ".vscode/tasks.json")
	if text, err := os.ReadFile(filepath.Join(ws, ".mcp.json.held")); err != nil || string(text) != "mine\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A guest that knows the other name cannot have taken it, nor make it too long. What has that name already stays.
func TestHeldBackWithoutAStoreOrAName(t *testing.T) {
	ws := empty(t)
	if err := os.WriteFile(filepath.Join(ws, ".claude.held"), []byte("the host's"), 0o644); err != nil {
		t.Fatal(err)
	}
	eng := testbox.OpenOn(t, func(h *engine.Host) { h.HeldDir = filepath.Join(os.DevNull, "held") })
	long := ".vscode/" + strings.Repeat("x", 252)
	_, err := testbox.Start(t, eng, engine.Spec{FS: engine.FS{Workspace: ws}}).Command("sh", "-c",
		"mkdir .mcp.json.held .vscode; echo >.mcp.json; echo >"+long+"; echo >.claude; chmod 500 .vscode").Run()
	if err == nil {
		t.Error("no error")
	}
	notThere(t, ws, ".mcp.json", long, ".claude")
	if text, err := os.ReadFile(filepath.Join(ws, ".claude.held")); err != nil || string(text) != "the host's" {
		t.Errorf("the host's file: %q, %v", text, err)
	}
}

// A repository with more linked worktrees than a guest may add is as any other, and they stay where they are.
func TestManyWorktreesOfTheHost(t *testing.T) {
	ws := repository(t)
	for i := range 300 {
		admin := filepath.Join(ws, ".git/worktrees", strconv.Itoa(i))
		err := errors.Join(os.MkdirAll(admin, 0o755), os.WriteFile(filepath.Join(admin, "commondir"), []byte("../..\n"), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	handOver(t, ws)
	box := testbox.Start(t, testbox.Open(t), engine.Spec{FS: engine.FS{Workspace: ws}})
	testbox.Run(t, box, "sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); mkdir .git/worktrees/mine$i; done")
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(ws, ".git/worktrees"))
	left = slices.DeleteFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "mine") })
	if err != nil || len(left) != 300 {
		t.Errorf("%d of the host's, %v", len(left), err)
	}
}
