//go:build linux

package workspace_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// made are what a guest makes so that the host executes something, where it does not exist yet. Nothing of it is left
// when the command has ended. held are the paths that the Result names; "" is any.
var made = []struct{ name, act, held string }{
	{"a file", `open(".mcp.json", "w").write("x")`, ".mcp.json"},
	{"an empty file", `open(".mcp.json", "w")`, ".mcp.json"},
	{"a directory", `os.mkdir(".vscode"); open(".vscode/tasks.json", "w").write("x")`, ""},
	{"deep in a directory", `os.makedirs(".cursor/a/b/c"); open(".cursor/a/b/c/d", "w").write("x")`, ""},
	{"a link", `os.symlink("/tmp", ".claude")`, ".claude"},
	{"a link to a directory of the workspace", `os.mkdir("x"); open("x/tasks.json", "w"); os.symlink("x", ".vscode")`, ".vscode"},
	{"a hard link", `open("x", "w").write("x"); os.link("x", ".mcp.json")`, ".mcp.json"},
	{"a file moved in", `open("x", "w").write("x"); os.rename("x", ".mcp.json")`, ".mcp.json"},
	{"a directory moved in", `os.mkdir("x"); open("x/tasks.json", "w").write("x"); os.rename("x", ".vscode")`, ".vscode/tasks.json"},
	{"many files moved in", `os.makedirs("x/y"); [open("x/y/%d" % i, "w") for i in range(300)]; os.rename("x", ".zed")`, ""},
	{"a deep tree moved in", `
d = os.open(".", os.O_RDONLY)
os.mkdir("x"); os.chdir("x")
for i in range(2000):
    os.mkdir("d"); os.chdir("d")
open("settings.json", "w")
os.rename("x", ".zed", src_dir_fd=d, dst_dir_fd=d)`, ".zed"},
	{"exchanged", `open("x", "w").write("x"); open(".mcp.json", "w"); exchange("x", ".mcp.json")`, ""},
	{"a FIFO", `os.mkfifo(".mcp.json")`, ".mcp.json"},
	{"a socket", `import socket; socket.socket(socket.AF_UNIX).bind(".mcp.json")`, ".mcp.json"},
	{"closed to its owner", `os.makedirs(".vscode/a"); open(".vscode/a/x", "w").write("x"); os.chmod(".vscode/a", 0); os.chmod(".vscode", 0)`, ""},
	{"a closed file", `open(".mcp.json", "w").write("x"); os.chmod(".mcp.json", 0)`, ""},
	{"in a closed workspace", `open("x", "w").write("x"); os.mkdir(".vscode"); os.link("x", ".vscode/x"); os.chmod(".vscode", 0o500); os.chmod(".", 0o500)`, ""},
	{"held open", `f = open(".mcp.json", "w"); f.write("x"); f.flush()`, ".mcp.json"},
	{"again and again", `
for i in range(10):
    try:
        os.makedirs(".vscode", exist_ok=True); open(".vscode/x", "w").write("x")
    except OSError: pass`, ""},
	{"beside much else", `
for i in range(20000):
    open("f%d" % (i % 7), "w"); os.unlink("f%d" % (i % 7))
open(".mcp.json", "w")`, ".mcp.json"},
	{"left to another process", `
if os.fork() == 0:
    while True:
        try: open(".mcp.json", "w").write("x")
        except OSError: pass
while not os.path.exists(".mcp.json"): pass`, ""},
	{"in a directory that is closed then", `open("t", "w"); d = os.open(".", os.O_RDONLY); os.rename("t", ".mcp.json"); os.fchmod(d, 0)`, ".mcp.json"},
	{"Mercurial's hooks", `os.mkdir(".hg"); open(".hg/hgrc", "w").write("[hooks]")`, ".hg/hgrc"},
	{"Mercurial's directory as a link", `os.mkdir("x"); open("x/hgrc", "w"); os.symlink("x", ".hg")`, ".hg"},
	{"a bare repository", `os.mkdir("refs"); os.mkdir("objects"); open("config", "w"); open("HEAD", "w").write("ref: refs/heads/main\n")`, "HEAD"},
	{"a bare repository by its commondir", `os.makedirs("x/refs"); os.mkdir("x/objects"); open("commondir", "w").write("x\n"); open("HEAD", "w").write("ref: refs/heads/main\n")`, "commondir"},
}

// madeInGit are the same for a workspace that is no repository yet: making one is allowed.
var madeInGit = []struct{ name, act, held string }{
	{"a monitor", `sh("git init -q; git config core.fsmonitor /tmp/evil")`, ".git/config"},
	{"hooks elsewhere", `sh("git init -q; git config core.hooksPath x")`, ".git/config"},
	{"another's settings", `sh("git init -q; git config include.path ../x")`, ".git/config"},
	{"settings by a link", `sh("git init -q; mv .git/config x; ln -s ../x .git/config")`, ".git/config"},
	{"settings by a hard link", `sh("git init -q; ln .git/config x"); open("x", "a").write("[core]\n\tfsmonitor = evil\n")`, ".git/config"},
	{"settings in one line", `sh("git init -q"); open(".git/config", "a").write("[core] fsmonitor = evil\n")`, ".git/config"},
	{"settings that go on", `sh("git init -q"); open(".git/config", "a").write("[user]\n\tname = \\\n[core]\n\tfsmonitor=evil\n")`, ".git/config"},
	{"a hook", `sh("git init -q"); open(".git/hooks/post-checkout", "w").write("#!/bin/sh\n")`, ".git/hooks/post-checkout"},
	{"hooks as a link", `sh("git init -q; rm -r .git/hooks; mkdir x; ln -s ../x .git/hooks")`, ".git/hooks"},
	{"a common directory", `sh("git init -q"); open(".git/commondir", "w").write("../x\n")`, ".git/commondir"},
	{"settings of a worktree", `sh("git init -q"); open(".git/config.worktree", "w")`, ".git/config.worktree"},
	{"a repository elsewhere", `sh("git init -q x"); open(".git", "w").write("gitdir: x/.git\n")`, ".git"},
	{"a repository as a link", `sh("git init -q x"); os.symlink("x/.git", ".git")`, ".git"},
	{"a submodule's hook", `sh("git init -q; git init -q --bare .git/modules/a/b"); open(".git/modules/a/b/hooks/x", "w")`, ".git/modules/a/b/hooks/x"},
	{"a repository that is closed for the moment", `os.makedirs("g/objects"); os.mkdir("g/refs"); open("g/HEAD", "w").write("ref: refs/heads/m\n"); open("g/config", "w").write("[core]\n\tfsmonitor = evil\n"); os.chmod("g", 0o600); os.rename("g", ".git")`, ".git/config"},
	{"a submodule below another", `sh("git init -q; git init -q --bare .git/modules/a; git init -q --bare .git/modules/a/b"); open(".git/modules/a/b/hooks/x", "w")`, ".git/modules/a/b/hooks/x"},
	{"more submodules than anybody has", `[os.makedirs("m/%d" % i) for i in range(300)]; sh("git init -q"); os.rename("m", ".git/modules")`, ".git/modules"},
	{"a linked worktree's settings", `sh("git init -q; git commit -q --allow-empty -m x; git worktree add -q y 2>/dev/null"); open(".git/worktrees/y/config.worktree", "w")`, ".git/worktrees/y/config.worktree"},
	{"a linked worktree's common directory", `sh("git init -q; git commit -q --allow-empty -m x; git worktree add -q y 2>/dev/null"); open(".git/worktrees/y/commondir", "w").write("../../../x\n")`, ".git/worktrees/y/commondir"},
}

// madeInRepository are the same for a workspace that is a repository, of which git obeys nothing else that is new.
var madeInRepository = []struct{ name, act, held string }{
	{"a submodule's hook", `sh("git init -q --bare .git/modules/a/b"); open(".git/modules/a/b/hooks/x", "w")`, ".git/modules/a/b/hooks/x"},
	{"a submodule's monitor", `sh("git init -q --bare .git/modules/a; git -C .git/modules/a config core.fsmonitor /tmp/evil")`, ".git/modules/a/config"},
	{"submodules as a link", `os.mkdir("x"); os.symlink("../x", ".git/modules")`, ".git/modules"},
	{"settings of a worktree", `open(".git/config.worktree", "w")`, ".git/config.worktree"},
}

// empty makes a workspace with nothing in it.
func empty(t testing.TB) string {
	t.Helper()
	ws := filepath.Join(testenv.Dir(t), "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	handOver(t, ws)
	return ws
}

// heldPaths are what a sandbox has moved aside, relative to the workspace.
func heldPaths(t *testing.T, box *engine.Sandbox, ws string) (paths []string) {
	t.Helper()
	held, err := box.Held()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range held {
		if rel, err := filepath.Rel(ws, h.Path); err == nil && h.Action == engine.HeldMoved {
			paths = append(paths, rel)
		}
	}
	return paths
}

// watched runs an act in a new sandbox, and returns what is held back when it has ended.
func watched(t *testing.T, eng *engine.Engine, ws, act string) []string {
	t.Helper()
	box := testbox.Start(t, eng, engine.Spec{FS: engine.FS{Workspace: ws}, Keep: true,
		Env: []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x"}})
	run := strings.Replace(actor, "try:", "def sh(c): check(-os.system(c))\ntry:", 1)
	res := testbox.Run(t, box, "python3", "-c", run, act)
	if res.Outcome != engine.OutcomeOK && res.Outcome != engine.OutcomeProtect {
		t.Fatalf("%s, stdout %s, stderr %s", res.Outcome, res.Stdout, res.Stderr)
	}
	// It is gone when the command has ended, whatever is left running.
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	return heldPaths(t, box, ws)
}

func TestHeldBack(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Program("python3"))
	testenv.Need(t, testenv.Program("git"))
	eng := testbox.Open(t)
	in := empty
	check := func(name, act, want string, left ...string) {
		t.Run(name, func(t *testing.T) {
			ws := in(t)
			held := watched(t, eng, ws, act)
			if err := os.Chmod(ws, 0o755); err != nil { // a guest may have closed it
				t.Fatal(err)
			}
			if len(held) == 0 || want != "" && !slices.Contains(held, want) {
				t.Errorf("held back: %q, want %q", held, want)
			}
			notThere(t, ws, left...)
			if want != "" {
				notThere(t, ws, want)
			}
			if out, err := os.ReadDir(ws); err == nil {
				for _, e := range out {
					if strings.Contains(e.Name(), "tegmen") {
						t.Errorf("in the workspace: %s", e.Name())
					}
				}
			}
		})
	}
	for _, m := range made {
		check(m.name, m.act, m.held, ".mcp.json", ".vscode/tasks.json", ".vscode/x", ".claude", ".cursor/a/b/c/d", ".zed/y", ".hg/hgrc")
	}
	for _, m := range madeInGit {
		check("git: "+m.name, m.act, m.held)
	}
	in = repository
	for _, m := range madeInRepository {
		check("repository: "+m.name, m.act, m.held)
	}
}

// Where git reads config.worktree it cannot be made at all: there is no moment in which the host's git could see it.
func TestWorktreeConfigThatGitReads(t *testing.T) {
	ws := repository(t)
	git(t, ws, "config", "extensions.worktreeConfig", "true")
	handOver(t, ws)
	res := testbox.Run(t, testbox.Start(t, testbox.Open(t), engine.Spec{FS: engine.FS{Workspace: ws}}),
		"sh", "-c", "echo >.git/config.worktree")
	if !strings.Contains(string(res.Stderr), "Read-only file system") || len(res.Held) > 0 {
		t.Errorf("%s, %s, %v", res.Outcome, res.Stderr, res.Held)
	}
}

// Who makes the same path again and again is ended: a program of the host would see it in between.
func TestEndsWhoKeepsMaking(t *testing.T) {
	eng := testbox.Open(t)
	for _, keep := range []bool{false, true} {
		ws := empty(t)
		box := testbox.Start(t, eng, engine.Spec{Keep: keep, FS: engine.FS{Workspace: ws}})
		res := testbox.Run(t, box, "sh", "-c", "while :; do echo x >.mcp.json; done")
		if res.Outcome != engine.OutcomeProtect || len(res.Held) < 16 || len(res.Held) > 200 {
			t.Errorf("keep %v: %s, %d held", keep, res.Outcome, len(res.Held))
		}
		if keep {
			testbox.Output(t, box, "true")
		}
		box = testbox.Start(t, eng, engine.Spec{Keep: keep, FS: engine.FS{Workspace: ws}})
		res = testbox.Run(t, box, "sh", "-c", "mkdir -p .git/hooks; i=0; while :; do i=$((i+1)); : >.git/hooks/$i; done")
		if res.Outcome != engine.OutcomeProtect {
			t.Errorf("keep %v, always another: %s, %d held", keep, res.Outcome, len(res.Held))
		}
	}
}

// What people do with git in an empty workspace is no reason to hold anything back.
func TestNothingIsHeldBackOfOrdinaryGit(t *testing.T) {
	testenv.Need(t, testenv.Program("python3"))
	testenv.Need(t, testenv.Program("git"))
	eng := testbox.Open(t)
	for name, script := range map[string]string{
		"init":      "git init -q -b main && git config user.name a && git config user.email a@x",
		"a remote":  "git init -q && git remote add origin https://host.example/x.git && git config branch.a.remote origin",
		"a clone":   "git init -q /tmp/a && git -C /tmp/a commit -q --allow-empty -m x && git clone -q /tmp/a .",
		"worktrees": "git init -q && git commit -q --allow-empty -m x && git worktree add -q y && cd y && echo 1 >f && git add f && git commit -qm y",
		"a submodule": "git init -q /tmp/a && git -C /tmp/a commit -q --allow-empty -m x && git init -q && " +
			"git -c protocol.file.allow=always submodule --quiet add /tmp/a sub && git commit -qm s",
		"a stash": "git init -q && echo 1 >f && git add f && git commit -qm 1 && echo 2 >f && git stash -q && git stash pop -q && git gc -q",
	} {
		t.Run(name, func(t *testing.T) {
			ws := empty(t)
			if held := watched(t, eng, ws, "sh('''"+script+"''')"); len(held) > 0 {
				t.Errorf("held back: %q", held)
			}
			out, err := exec.Command("git", "-c", "safe.directory=*", "-C", ws, "status", "--porcelain").CombinedOutput()
			if err != nil || strings.Contains(string(out), "tegmen") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// In a repository that exists, a guest adds linked worktrees and commits in those that are there, and can lead neither
// to hooks of its own.
func TestWorktreesBelowTheWorkspace(t *testing.T) {
	testenv.Need(t, testenv.Program("git"))
	ws := repository(t)
	script(t, ws, "git -c safe.directory=* -c user.name=a -c user.email=a@x commit -q --allow-empty -m x\n"+
		"git -c safe.directory=* worktree add -q .worktrees/x\n:")
	owned(t, ws)
	box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws},
		Env: []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x"}})
	testbox.Output(t, box, "cd .worktrees/x && echo 1 >f && git add f && git commit -qm 1 && git worktree add -q ../y && "+
		"cd ../y && echo 2 >g && git add g && git commit -qm 2")
	for _, act := range []string{
		"echo ../../x >.git/worktrees/x/commondir", "echo x >.git/worktrees/x/config.worktree", "echo x >.git/worktrees/x/gitdir",
		"mv .git/worktrees/x .git/worktrees/z", "mv .git/worktrees .git/z",
	} {
		if res := testbox.Run(t, box, "sh", "-c", act); res.Outcome != engine.OutcomeExit {
			t.Errorf("%s: %s", act, res.Outcome)
		}
	}
	res := testbox.Run(t, box, "sh", "-c", "echo ../../../z >.git/worktrees/y/commondir")
	if len(res.Held) != 1 || res.Held[0].Path != ws+"/.git/worktrees/y/commondir" || res.Held[0].Name != ".git/worktrees" {
		t.Errorf("held: %+v", res.Held)
	}
}

// What the host has made since the plan was made is the host's, and stays.
func TestMadeByTheHostMeanwhile(t *testing.T) {
	eng := testbox.Open(t)
	ws := empty(t)
	plan, err := eng.Compile(engine.Spec{FS: engine.FS{Workspace: ws}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(ws+"/.vscode", 0o755), os.WriteFile(ws+"/.vscode/tasks.json", []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if box, err := eng.StartPlan(context.Background(), plan); !errors.Is(err, engine.ErrChanged) {
		t.Fatalf("%v, %v", box, err)
	}
	if _, err := os.Stat(ws + "/.vscode/tasks.json"); err != nil {
		t.Error(err)
	}
}

// What runs only when somebody runs it stays, and is reported once.
func TestReportsWhatStays(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: empty(t)}})
	res := testbox.Run(t, box, "sh", "-c", "mkdir -p .github/workflows && touch .github/workflows/a.yml .npmrc .envrc")
	var got []string
	for _, h := range res.Held {
		if h.Action != engine.HeldStays {
			t.Errorf("held back: %+v", h)
		}
		got = append(got, h.Name)
	}
	if want := ".npmrc .github/workflows .envrc"; strings.Join(got, " ") != want {
		t.Errorf("reported %q, want %s", got, want)
	}
	if res := testbox.Run(t, box, "sh", "-c", "echo x >>.npmrc"); len(res.Held) > 0 {
		t.Errorf("reported again: %+v", res.Held)
	}
}

// A protected path may be a symbolic link: it cannot be replaced, nor can what it leads to in the workspace.
func TestProtectedLinks(t *testing.T) {
	ws := empty(t)
	outside := testenv.Dir(t)
	script(t, ws, "mkdir .agents gh && echo 1 >.agents/x && ln -s .agents .claude && ln -s "+outside+" .vscode && "+
		"ln -s gh .github && ln -s none .cursor && git init -q r && mv r/.git gitdir && ln -s gitdir .git\n:")
	owned(t, ws)
	for _, mode := range []engine.ProtectMode{engine.ProtectWatch, engine.ProtectStrict} {
		if mode == engine.ProtectStrict { // a placeholder stands behind the link
			script(t, ws, "rm .cursor\n:")
		}
		box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: ws, Protect: mode}})
		if got := testbox.Output(t, box, "cat .claude/x; git status --porcelain | head -1"); !strings.HasPrefix(got, "1\n?? ") {
			t.Errorf("%s: %q", mode, got)
		}
		for _, act := range []string{
			"rm .claude", "mv .claude y", "ln -sfn /tmp .claude", "mkdir y; mv y .claude", "touch .agents/y", "mv .agents y",
			"echo y >.claude/x", "rm .vscode", "ln -sfn .agents .vscode", "rm .github", "rm .git", "mv gitdir y",
			"echo y >.git/hooks/y", "echo y >gitdir/config",
		} {
			if res := testbox.Run(t, box, "sh", "-c", act); res.Outcome != engine.OutcomeExit {
				t.Errorf("%s: %s: %s", mode, act, res.Outcome)
			}
		}
		if mode == engine.ProtectWatch {
			res := testbox.Run(t, box, "sh", "-c", "mkdir none && echo y >none/y")
			if len(res.Held) != 1 || res.Held[0].Path != ws+"/none/y" || res.Held[0].Name != ".cursor" {
				t.Errorf("held: %+v", res.Held)
			}
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
}
