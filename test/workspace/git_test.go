//go:build linux

package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// git runs git on the host, whoever owns the directory.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	testenv.Need(t, testenv.Program("git"))
	global := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(global, []byte("[user]\nname = host\nemail = h@example.org\n[safe]\ndirectory = *\n"+
		"[protocol \"file\"]\nallow = always\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+global)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// handOver gives a directory to the account of guests.
func handOver(t testing.TB, dir string) {
	t.Helper()
	testbox.GiveTo(t, dir, 4321)
}

// repository makes a workspace with a git repository of one commit.
func repository(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(testenv.Dir(t), "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q", "--template=")
	if err := os.Mkdir(dir+"/.git/hooks", 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	handOver(t, dir)
	return dir
}

// commitInside commits inside. git must print nothing else.
func commitInside(t *testing.T, ws string) {
	t.Helper()
	box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws}, Env: []string{
		"GIT_AUTHOR_NAME=guest", "GIT_AUTHOR_EMAIL=g@example.org", "GIT_COMMITTER_NAME=guest",
		"GIT_COMMITTER_EMAIL=g@example.org",
	}})
	if got := testbox.Output(t, box, "echo text >file && git add -A && git commit -qm inside && git branch other && "+
		"git fsck && git status --short && git log -1 --format=%s"); got != "inside" {
		t.Errorf("inside: %s", got)
	}
	// The host's git works there at the same time.
	if got := git(t, ws, "log", "-1", "--format=%s", "other"); got != "inside" {
		t.Errorf("outside: %s", got)
	}
	if got := git(t, ws, "status", "--short"); got != "" {
		t.Errorf("outside: %s", got)
	}
	if got := git(t, ws, "fsck"); got != "" {
		t.Errorf("outside: %s", got)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	handOver(t, ws)
}

func TestCommitsInside(t *testing.T) {
	testenv.Long(t)
	t.Run("repository", func(t *testing.T) {
		ws := repository(t)
		before := listing(t, ws+"/.git/hooks")
		commitInside(t, ws)
		nothingMore(t, ws+"/.git/hooks", before, 0)
		testbox.Output(t, testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws}}),
			"git gc -q && git worktree list && git stash list")
	})
	t.Run("linked worktree", func(t *testing.T) {
		main := repository(t)
		dir := filepath.Dir(main)
		git(t, main, "config", "extensions.worktreeConfig", "true")
		git(t, main, "worktree", "add", "-q", dir+"/linked")
		git(t, main, "worktree", "add", "-q", dir+"/third")
		handOver(t, dir)
		commitInside(t, dir+"/linked")
		box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: dir + "/linked"}})
		for _, name := range []string{"hooks/x", "config", "config.worktree", "commondir", "modules/x", "worktrees/linked/commondir", "worktrees/linked/gitdir", "worktrees/linked/config.worktree", "worktrees/third/HEAD", "worktrees/x", "../file", "../../third/file"} {
			if res := testbox.Run(t, box, "sh", "-c", ">"+main+"/.git/"+name); res.Outcome == engine.OutcomeOK {
				if _, err := os.Stat(filepath.Join(main, ".git", name)); err == nil {
					t.Errorf("%s can be written to", name)
				}
			}
		}
		if res := testbox.Run(t, box, "sh", "-c", "rm .git || mv .git x || echo x >.git"); res.Outcome == engine.OutcomeOK {
			t.Error(".git can be replaced")
		}
	})
	t.Run("submodule", func(t *testing.T) {
		ws := repository(t)
		git(t, ws, "submodule", "add", "-q", repository(t), "sub")
		git(t, ws, "commit", "-qam", "submodule")
		handOver(t, ws)
		commitInside(t, ws)
		env := "cd sub && echo x >f && git add f && " +
			"GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=b git commit -qm inside"
		if res := testbox.Run(t, testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws}}), "sh", "-c",
			env); res.Outcome == engine.OutcomeOK {
			t.Error("a submodule's repository is writable")
		}
		testbox.Output(t, testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws,
			AllowWrite: []string{".git/modules"}}}), env)
	})
	t.Run("in a repository", func(t *testing.T) {
		// The empty .git that stands for a missing one does not hide the repository above.
		top := repository(t)
		if err := os.Mkdir(top+"/sub", 0o755); err != nil {
			t.Fatal(err)
		}
		handOver(t, top)
		testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: top + "/sub"}})
		if got := git(t, top+"/sub", "rev-parse", "--show-toplevel"); got != top {
			t.Errorf("outside: %s", got)
		}
	})
}
