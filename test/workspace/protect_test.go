//go:build linux

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// listing returns all entries of a directory, placeholders among them.
func listing(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if !strings.Contains(p, "/objects/") && !errors.Is(err, fs.ErrNotExist) {
			names = append(names, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// nothingMore checks that a directory is as it was: now, or within wait if another process still cleans up.
func nothingMore(t testing.TB, dir string, before []string, wait time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		now := listing(t, dir)
		if slices.Equal(now, before) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %v", slices.DeleteFunc(now, func(n string) bool { return slices.Contains(before, n) }))
		}
	}
}

func TestNoPlaceholdersAfterwards(t *testing.T) {
	eng := testbox.Open(t)
	ws := repository(t)
	before := listing(t, ws)
	spec := engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}}
	t.Run("closed", func(t *testing.T) {
		box, err := eng.Start(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(ws + "/.vscode"); err != nil {
			t.Error(err)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		nothingMore(t, ws, before, 0)
	})
	t.Run("timeout", func(t *testing.T) {
		box := testbox.Start(t, eng, spec)
		cmd := box.Command("sleep", "1000")
		cmd.Wall = time.Millisecond
		if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeTimeout {
			t.Fatalf("%+v, %v", res, err)
		}
		<-box.Done()
		nothingMore(t, ws, before, 0)
	})
	t.Run("failed start", func(t *testing.T) {
		spec := spec
		src := testenv.Dir(t) + "/x"
		spec.FS.Mounts = []engine.Mount{testbox.Bind(src, "/x")}
		if err := os.Mkdir(src, 0o755); err != nil {
			t.Fatal(err)
		}
		plan, err := eng.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(src, src+"y"), os.Mkdir(src, 0o755)); err != nil {
			t.Fatal(err)
		}
		if box, err := eng.StartPlan(context.Background(), plan); !errors.Is(err, engine.ErrChanged) {
			t.Fatalf("%v, %v", box, err)
		}
		nothingMore(t, ws, before, 0)
	})
	t.Run("made meanwhile", func(t *testing.T) {
		plan, err := eng.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(ws+"/.vscode", 0o755); err != nil {
			t.Fatal(err)
		}
		if box, err := eng.StartPlan(context.Background(), plan); !errors.Is(err, engine.ErrChanged) {
			t.Fatalf("%v, %v", box, err)
		}
		if err := os.Remove(ws + "/.vscode"); err != nil {
			t.Fatal(err)
		}
		nothingMore(t, ws, before, 0)
	})
	t.Run("left by another", func(t *testing.T) {
		if err := errors.Join(os.Mkdir(ws+"/.vscode", 0), os.Chmod(ws+"/.vscode", 0o555|os.ModeSticky),
			os.Mkdir(ws+"/.tegmen", 0), os.Chmod(ws+"/.tegmen", 0o555|os.ModeSticky)); err != nil {
			t.Fatal(err)
		}
		if err := testbox.Start(t, eng, spec).Close(); err != nil {
			t.Fatal(err)
		}
		nothingMore(t, ws, before, 0)
	})
}

// If nobody can create anything in a directory, no placeholder is needed; but an owner could make room.
func TestUnwritableWorkspace(t *testing.T) {
	eng := testbox.Open(t)
	t.Run("another's", func(t *testing.T) {
		testenv.Need(t, testenv.User, testenv.File("/srv"))
		if res := testbox.Run(t, testbox.Start(t, eng, engine.Spec{FS: engine.FS{Workspace: "/srv"}}), "mkdir",
			"/srv/.vscode"); res.Outcome != engine.OutcomeExit {
			t.Errorf("%+v", res)
		}
	})
	t.Run("owner's", func(t *testing.T) {
		testenv.Need(t, testenv.User)
		ws := repository(t)
		for _, dir := range []string{ws, ws + "/.git"} {
			if err := os.Chmod(dir, 0o555); err != nil {
				t.Fatal(err)
			}
			if _, err := eng.Start(context.Background(), engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}}); !errors.Is(err,
				fs.ErrPermission) || !strings.Contains(err.Error(), "make it writable") {
				t.Errorf("%s: %v", dir, err)
			}
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a trap", func(t *testing.T) {
		for _, trap := range []func(name string) error{
			func(name string) error { return os.Symlink("/tmp", name) },
			func(name string) error { return os.WriteFile(name, nil, 0o644) },
		} {
			ws := repository(t)
			if err := trap(ws + "/.tegmen"); err != nil {
				t.Fatal(err)
			}
			if _, err := eng.Start(context.Background(), engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}}); err == nil ||
				!strings.Contains(err.Error(), ws+"/.tegmen") {
				t.Errorf("%v", err)
			}
		}
	})
}

// What the host puts in place of a placeholder is the host's.
func TestPlaceholdersThatHaveBecomeReal(t *testing.T) {
	ws := repository(t)
	box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}})
	for _, name := range []string{".git/config.worktree", ".git/commondir"} {
		if err := errors.Join(os.WriteFile(ws+"/new", []byte(".\n"), 0o644),
			os.Rename(ws+"/new", filepath.Join(ws, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(ws+"/.claude", 0o755), os.WriteFile(ws+"/.claude/x", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git/config.worktree", ".git/commondir", ".claude/x"} {
		if _, err := os.Stat(filepath.Join(ws, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoShareAWorkspace(t *testing.T) {
	ws := repository(t)
	before := listing(t, ws)
	for _, firstEndsFirst := range []bool{true, false} {
		boxes := []*engine.Sandbox{testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}}),
			testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}})}
		// A guest cannot delay the end of the other sandbox or the start of a third.
		for _, box := range boxes {
			testbox.Output(t, box, "flock -n .tegmen true; exec 9<.tegmen; flock -x 9; exec 8<.vscode; flock -x -n 8 || "+
				"true; setsid sleep 1000 >/dev/null 2>&1 & echo")
		}
		if !firstEndsFirst {
			slices.Reverse(boxes)
		}
		if err := boxes[0].Close(); err != nil {
			t.Fatal(err)
		}
		if res := testbox.Run(t, boxes[1], "sh", "-c", "mkdir .vscode || touch .vscode/x .git/hooks/x"); res.ExitCode != 1 {
			t.Errorf("the other: %+v", res)
		}
		if err := boxes[1].Close(); err != nil {
			t.Fatal(err)
		}
		nothingMore(t, ws, before, 0)
	}
}

func TestManyShareAWorkspace(t *testing.T) {
	eng := testbox.Open(t)
	ws := repository(t)
	before := listing(t, ws)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 3 {
				box, err := eng.Start(context.Background(), engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}})
				if err != nil {
					t.Error(err)
					return
				}
				res, err := box.Command("sh", "-c", "for f in .vscode/x .git/hooks/x .github/x .git/modules/x; do touch $f && "+
					"echo made $f; done; mkdir .claude && echo made; true").Run()
				if err != nil || len(res.Stdout) > 0 {
					t.Errorf("%v, %s", err, res.Stdout)
				}
				if err := box.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	nothingMore(t, ws, before, 0)
}

// workspaceHost starts sandboxes on a workspace until it is killed, or a single one if told to hold. Guests in them
// keep trying to create protected files.
func workspaceHost() {
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		panic(err)
	}
	for {
		box, err := eng.Start(context.Background(), engine.Spec{FS: engine.FS{Workspace: os.Args[1], Protect: engine.ProtectStrict}})
		if err != nil {
			panic(err)
		}
		cmd := box.Command("sh", "-c", "echo; while :; do mkdir .vscode; >.git/commondir; >.git/hooks/x; done 2>/dev/null")
		lines, w := io.Pipe()
		cmd.Stdout = w
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		if _, err := io.ReadFull(lines, make([]byte, 1)); err != nil {
			panic(err)
		}
		fmt.Println("started")
		if os.Args[2] == "hold" {
			select {}
		}
		if err := box.Close(); err != nil {
			panic(err)
		}
		_ = w.Close()
		if _, err := cmd.Wait(); err != nil {
			panic(err)
		}
	}
}

func TestNoPlaceholdersOfAKilledHost(t *testing.T) {
	testenv.Long(t)
	eng := testbox.Open(t)
	ws := repository(t)
	before := listing(t, ws)
	for i := range 6 {
		mode := []string{"hold", "go on"}[i%2]
		host, out := testbox.StartHelper(t, "workspace", ws, mode)
		if _, err := io.ReadFull(out, make([]byte, len("started\n"))); err != nil {
			t.Fatal(err)
		}
		if mode != "hold" {
			for range 3 * i { // for the time it takes: at another point each time
				_ = exec.Command("true").Run()
			}
		}
		if err := host.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = host.Wait() // killed
		testbox.Gone(t, ws)
		if mode != "hold" {
			// It may have died early; the next engine cleans up.
			if err := testbox.Start(t, eng, engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}}).Close(); err != nil {
				t.Fatal(err)
			}
		}
		nothingMore(t, ws, before, 10*time.Second)
	}
}

// The process that waits for the death of the host holds no descriptor that others wait to see closed.
func TestJanitorHoldsLittle(t *testing.T) {
	ws := repository(t)
	testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws, Protect: engine.ProtectStrict}})
	var janitor string
	for deadline := time.Now().Add(10 * time.Second); janitor == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("none that waits")
		}
		names, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			stat, _ := os.ReadFile(name) // it may have ended
			if strings.Contains(string(stat), fmt.Sprintf("(tegmen-janitor) S %d ", os.Getpid())) {
				janitor = filepath.Dir(name)
			}
		}
	}
	fds, err := filepath.Glob(janitor + "/fd/*")
	if err != nil || len(fds) != 5 {
		t.Errorf("%v, %v", fds, err)
	}
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		if err != nil || !strings.HasPrefix(to, ws) && (filepath.Base(fd) != "0" || !strings.HasPrefix(to, "pipe:")) {
			t.Errorf("%s: %s, %v", fd, to, err)
		}
	}
}
