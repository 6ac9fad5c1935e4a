//go:build linux

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// acts are what a guest does to make the host execute something, and the errno it gets. Without protection each
// succeeds.
var acts = []struct{ name, act, want string }{
	{"make a directory", `os.mkdir(".vscode")`, "EEXIST"},
	{"write in it", `os.makedirs(".vscode", exist_ok=True); open(".vscode/tasks.json", "w")`, "EROFS"},
	{"make a file", `open(".mcp.json", "x")`, "EEXIST"},
	{"write a file", `open(".mcp.json", "w")`, "EISDIR"},
	{"make a link", `os.symlink("/tmp", ".claude")`, "EEXIST"},
	{"make a parent", `os.mkdir(".github")`, "EEXIST"},
	{"move one in", `os.mkdir("x"); os.rename("x", ".vscode")`, "EBUSY"},
	{"exchange one", `os.mkdir("x"); os.makedirs(".vscode", exist_ok=True); exchange("x", ".vscode")`, "EBUSY"},
	{"remove one", `os.makedirs(".vscode", exist_ok=True); os.rmdir(".vscode")`, "EBUSY"},
	{"hooks", `open(".git/hooks/pre-commit", "w")`, "EROFS"},
	{"hooks, by another way", `os.chdir(".git"); d = os.open(".", os.O_RDONLY); os.open("../.git/hooks/x", os.O_CREAT | os.O_WRONLY, dir_fd=d)`, "EROFS"},
	{"hooks, by /proc", `open("/proc/self/cwd/.git/hooks/x", "w")`, "EROFS"},
	{"move hooks", `os.rename(".git/hooks", ".git/x")`, "EBUSY"},
	{"mode of hooks", `os.chmod(".git/hooks", 0o777)`, "EROFS"},
	{"write the settings", `open(".git/config", "a")`, "EROFS"},
	{"remove the settings", `os.unlink(".git/config")`, "EBUSY"},
	{"replace the settings", `open(".git/x", "w"); os.rename(".git/x", ".git/config")`, "EBUSY"},
	{"exchange the settings", `open(".git/x", "w"); exchange(".git/x", ".git/config")`, "EBUSY"},
	{"link the settings", `os.link(".git/config", "x")`, "EXDEV"},
	{"settings elsewhere", `open(".git/commondir", "w")`, "EROFS"},
	{"link to settings elsewhere", `open("x", "w"); os.link("x", ".git/commondir")`, "EEXIST"},
	{"settings of a worktree", `open(".git/config.worktree", "x")`, "EEXIST"},
	{"a submodule's repository", `os.makedirs(".git/modules/x")`, "EROFS"},
	{"move the repository", `os.rename(".git", "x")`, "EBUSY"},
	{"exchange the repository", `os.mkdir("x"); exchange("x", ".git")`, "EBUSY"},
	{"move the parent", `os.rename("nested", "x")`, ""},
}

const actor = `
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(r):
    if r < 0:
        raise OSError(ctypes.get_errno(), "")
def exchange(a, b):
    check(libc.renameat2(-100, a.encode(), -100, b.encode(), 2))
try:
    exec(sys.argv[1])
except OSError as e:
    print(errno.errorcode[e.errno])
`

func TestProtectedFromGuests(t *testing.T) {
	testenv.Long(t)
	testenv.Need(t, testenv.Program("python3"))
	eng := testbox.Open(t)
	act := func(t *testing.T, ws, what string, spec engine.Spec) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(ws, "nested"), 0o755); err != nil {
			t.Fatal(err)
		}
		handOver(t, ws)
		spec.FS.Workspace = ws
		res := testbox.Run(t, testbox.Start(t, eng, spec), "python3", "-c", actor, what)
		if res.Outcome != engine.OutcomeOK {
			t.Fatalf("%s, stderr %s", res.Outcome, res.Stderr)
		}
		return strings.TrimSpace(string(res.Stdout))
	}
	strict := engine.Spec{FS: engine.FS{Protect: engine.ProtectStrict}}
	ws := repository(t) // of which nothing becomes
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) {
			if got := act(t, repository(t), a.act, engine.Spec{FS: engine.FS{AllowWrite: []string{"."}}}); got != "" {
				t.Errorf("unprotected: %s", got)
			}
			if got := act(t, ws, a.act, strict); got != a.want {
				t.Errorf("got %q, want %q", got, a.want)
			}
			for _, left := range []string{"x", ".git/x"} {
				if err := os.RemoveAll(filepath.Join(ws, left)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	for name, what := range map[string]string{
		"mount over":  `check(libc.mount(b"x", b".git/hooks", b"tmpfs", 0, None))`,
		"unmount":     `check(libc.umount2(b".git/hooks", 2))`,
		"make it rw":  `check(libc.mount(None, b".git/hooks", None, 32 | 4096, None))`,
		"user mounts": `check(libc.unshare(0x10020000))`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := act(t, ws, what, engine.Spec{User: &engine.User{}}); got != "EPERM" && got != "ENOSPC" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A workspace that is given by a link has two names; some of its protected parts exist and some do not.
func TestProtectedByEveryName(t *testing.T) {
	ws := repository(t)
	link := filepath.Join(testenv.Dir(t), "link")
	if err := errors.Join(os.Symlink(ws, link), os.MkdirAll(ws+"/.github/workflows", 0o755),
		os.WriteFile(ws+"/.profile", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	handOver(t, ws)
	before := listing(t, ws)
	box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: link, Protect: engine.ProtectStrict}})
	for _, dir := range []string{ws, link} {
		for _, name := range []string{".github/workflows/x", ".github/actions/x", ".vscode/x", ".git/hooks/x",
			".git/modules/x", ".bashrc/x", ".profile"} {
			res := testbox.Run(t, box, "sh", "-c", "echo x >"+dir+"/"+name)
			if !strings.Contains(string(res.Stderr), "Read-only file system") {
				t.Errorf("%s/%s: %s, %s", dir, name, res.Outcome, res.Stderr)
			}
		}
		testbox.Output(t, box, "cd "+dir+" && echo x >.github/x && rm .github/x")
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	nothingMore(t, ws, before, 0)
}
