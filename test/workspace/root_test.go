//go:build linux

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/workspace"
)

// idmaps needs a file system for tests that can have idmapped mounts.
func idmaps(t *testing.T) string {
	t.Helper()
	testenv.Need(t, testenv.Root)
	dir := testenv.Dir(t)
	testenv.Need(t, testbox.IDMap(dir))
	ws := filepath.Join(dir, "ws")
	script(t, dir, "mkdir ws && chmod 700 ws && cd ws && echo mine >file && chmod 600 file && mkdir dir && cp /bin/true suid && chmod 4755 suid")
	return ws
}

// rootOwns checks that everything in a directory is root's, and that nothing runs as root but what did before.
func rootOwns(t *testing.T, dir string, suid ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		var st syscall.Stat_t
		if err = errors.Join(err, syscall.Lstat(path, &st)); err != nil {
			return err
		}
		if st.Uid != 0 || st.Gid != 0 {
			t.Errorf("%s: %d:%d", path, st.Uid, st.Gid)
		}
		if st.Mode&0o6000 != 0 && !strings.HasSuffix(path, "/suid") {
			t.Errorf("%s: mode %o", path, st.Mode)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A workspace of root's is the guest's inside, though the guest is nobody, and what it makes is root's.
func TestRootsOwnWorkspace(t *testing.T) {
	ws := idmaps(t)
	spec := engine.Spec{Keep: true, FS: engine.FS{Workspace: ws}}
	box := testbox.Sandbox(t, spec)
	if got := testbox.Output(t, box, "cat file; stat -c %u:%g . file; echo new >new; mkdir -p a/b; ln file link; mv dir a; chmod 644 file"); got !=
		"mine\n1000:1000\n1000:1000" {
		t.Errorf("got %q", got)
	}
	testbox.Output(t, box, "git init -q && git config user.email a@x && git config user.name a && git add new && git commit -qm 1 && "+
		"cp -p file copy && tar cf t.tar file a && mkdir x && tar xpf t.tar -C x && printf 'all:\\n\\tinstall -m 755 file y\\n' >Makefile && make -s")
	if res := testbox.Run(t, box, "cat", "/proc/1/environ"); res.Outcome == engine.OutcomeOK {
		t.Error("reads pid 1's")
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	rootOwns(t, ws)

	spec.FS.WorkspaceMode = engine.WorkspaceOverlay
	box = testbox.Sandbox(t, spec)
	testbox.Output(t, box, "echo more >>file; rm new; echo z >z")
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Commit(t.Context(), workspace.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(ws + "/file"); string(text) != "mine\nmore\n" {
		t.Errorf("committed %q, %v", text, err)
	}
	rootOwns(t, ws)
}

// The same for a mount; a read-only one shows root's files as root's.
func TestRootsOwnMount(t *testing.T) {
	ws := idmaps(t)
	box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Mounts: []engine.Mount{
		{Source: ws, Target: "/rw"}, {Source: ws, Target: "/ro", ReadOnly: true}}}})
	if got := testbox.Output(t, box, "cat /rw/file; echo x >/rw/new; cat /ro/file 2>&1; true"); !strings.HasPrefix(got, "mine\n") ||
		!strings.Contains(got, "Permission denied") {
		t.Errorf("got %q", got)
	}
	rootOwns(t, ws)
}

// No call leaves a program that runs as root outside: a guest's file there is root's.
func TestNoSetIDInRootsWorkspace(t *testing.T) {
	testenv.Need(t, testenv.Program("python3"))
	ws := idmaps(t)
	eng := testbox.Open(t)
	for _, act := range []string{
		`os.chmod("file", 0o4755)`, `os.chmod("file", 0o2755)`, `os.chmod("dir", 0o6755)`, `os.chmod("link", 0o4755)`,
		`os.fchmod(os.open("file", os.O_RDONLY), 0o4755)`, `os.chmod("file", 0o4755, dir_fd=os.open(".", os.O_RDONLY))`,
		`os.open("x", os.O_CREAT | os.O_WRONLY, 0o4755)`, `os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755)`,
		`os.mknod("x", 0o104755)`, `call(452, -100, b"file", 0o4755, 0)`, `call(90, b"file", 0o4755)`, `call(85, b"x", 0o4755)`,
		`how = struct.pack("QQQ", 0o101, 0o4755, 0); call(437, -100, b"x", how, 24)`, `call(2, b"x", 0o101, 0o4755)`,
		`os.setxattr("file", "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0))`,
		`os.chown("file", 0, 0)`, `os.open("suid", os.O_WRONLY | os.O_TRUNC); sys.exit(3)`,
		`os.truncate("suid", 1); sys.exit(3)`, `open("suid", "ab").write(b"x"); sys.exit(3)`,
	} {
		script(t, ws, "cp /bin/true suid && chmod 4755 suid; rm -f x; touch link\n:")
		res := testbox.Run(t, testbox.Start(t, eng, engine.Spec{FS: engine.FS{Workspace: ws}}), "python3", "-c", `
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*a):
    if libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a]) < 0:
        raise OSError(ctypes.get_errno(), "")
try:
    exec(sys.argv[1])
except OSError as e:
    sys.exit(3)
print("done")
`, act)
		if res.ExitCode != 3 {
			t.Errorf("%s: %s, %s%s", act, res.Outcome, res.Stdout, res.Stderr)
		}
		rootOwns(t, ws)
		if st, err := os.Stat(ws + "/suid"); err != nil || strings.Contains(act, "suid") && st.Mode()&os.ModeSetuid != 0 {
			t.Errorf("%s: %v, %v", act, st.Mode(), err)
		}
	}
}
