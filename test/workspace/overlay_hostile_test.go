//go:build linux

package workspace_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/workspace"
)

// refused checks that a commit of these paths is refused, and changes nothing.
func refused(t testing.TB, box *engine.Sandbox, why error, paths ...string) {
	t.Helper()
	ws := box.Plan().Spec.FS.Workspace
	before := script(t, ws, everything)
	_, err := box.Commit(testbox.Within(t, time.Minute), workspace.CommitOptions{})
	var r *workspace.RefusedError
	if !errors.As(err, &r) || !errors.Is(err, why) || strings.Join(r.Paths, " ") != strings.Join(paths, " ") {
		t.Errorf("got %v, want %v for %v", err, why, paths)
	}
	if now := script(t, ws, everything); now != before {
		t.Errorf("there is now %s", now)
	}
}

func TestOverlayProtects(t *testing.T) {
	testenv.Long(t)
	for _, c := range []struct {
		host, guest, allow string
		paths              []string
	}{
		{"", "mkdir -p .git/hooks; echo x >.git/hooks/pre-commit", ".git",
			[]string{".git", ".git/hooks", ".git/hooks/pre-commit"}},
		{"git init -q", "echo x >.git/hooks/pre-commit; echo y >>.git/config; echo z >.git/description", ".git",
			[]string{".git/config", ".git/hooks/pre-commit"}},
		{"git init -q", "git config core.fsmonitor x", ".git/config", []string{".git/config"}},
		{"git init -q; rm -rf .git/hooks", "mkdir -p /tmp/h; ln -s /tmp/h .git/hooks", ".git/hooks", []string{".git/hooks"}},
		{"mkdir .github", "mkdir -p .github/workflows; touch .github/workflows/x", ".github/workflows",
			[]string{".github/workflows", ".github/workflows/x"}},
		{"mkdir .github", "rmdir .github; ln -s d .github", ".", []string{".github"}},
		{"", "touch .npmrc; echo >.NPMRC; mkdir -p .VSCode", ".", []string{".NPMRC", ".VSCode", ".npmrc"}},
		{"mkdir .vscode; touch .vscode/x", "rm -r .vscode", ".vscode", []string{".vscode", ".vscode/x"}},
		{"mkdir .vscode; touch .vscode/x", "mv .vscode d2", ".vscode", []string{".vscode", ".vscode/x"}},
		{"mkdir refs objects", "echo 'ref: refs/heads/main' >HEAD", "HEAD", []string{"HEAD"}},
	} {
		t.Run(c.guest, func(t *testing.T) {
			testenv.Need(t, testenv.Program("git"))
			s := overlaid(t)
			s.FS.Protect = engine.ProtectStrict
			script(t, s.FS.Workspace, c.host+"\n:")
			owned(t, s.FS.Workspace)
			box := testbox.Sandbox(t, s)
			testbox.Output(t, box, c.guest)
			refused(t, box, workspace.ErrProtected, c.paths...)
			s.FS.AllowWrite = []string{c.allow}
			box = testbox.Sandbox(t, s)
			inside := testbox.Output(t, box, c.guest+"; "+everything)
			commit(t, box)
			if now := script(t, s.FS.Workspace, everything); strings.TrimSpace(now) != inside {
				t.Errorf("allowed: there is %s", now)
			}
		})
	}
}

func TestOverlayConflicts(t *testing.T) {
	for _, c := range []struct {
		host, guest string
		paths       []string
	}{
		{"echo host >a", "echo guest >a", []string{"a"}},
		{"chmod 600 a", "rm a", []string{"a"}},
		{"echo host >d/new", "rm -r d", []string{"d/new"}},
		{"echo host >n", "echo guest >n", []string{"n"}},
		{"mv b a", "echo guest >a", []string{"a"}},
		{"rm -r d; echo d >d", "echo guest >d/y", []string{"d"}},
		{"ln -sfn e l", "ln -sfn d l", []string{"l"}},
	} {
		t.Run(c.host, func(t *testing.T) {
			s := overlaid(t)
			box := testbox.Sandbox(t, s)
			testbox.Output(t, box, c.guest)
			tick(t, s.FS.Workspace)
			script(t, s.FS.Workspace, c.host)
			refused(t, box, workspace.ErrConflict, c.paths...)
			if done, err := box.Commit(context.Background(), workspace.CommitOptions{Force: true}); err != nil {
				t.Errorf("%+v, %v", done, err)
			}
			if left := changes(t, box); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
	t.Run("of other files", func(t *testing.T) {
		s := overlaid(t)
		box := testbox.Sandbox(t, s)
		testbox.Output(t, box, "echo guest >a; rm d/y")
		script(t, s.FS.Workspace, "echo host >b; echo host >d/other; touch a2")
		commit(t, box)
		// The same holds for paths that have been committed.
		testbox.Output(t, box, "echo again >a; mkdir d/y")
		commit(t, box)
		if got := script(t, s.FS.Workspace, "cat a b d/other; test -d d/y"); got != "again\nhost\nhost\n" {
			t.Error(got)
		}
	})
}

// tick returns when the clock that stamps files has moved on since the sandbox started.
func tick(t testing.TB, dir string) {
	t.Helper()
	begin := time.Now()
	for {
		f, err := os.CreateTemp(dir, "tick")
		if err != nil {
			t.Fatal(err)
		}
		st, err := f.Stat()
		if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
			t.Fatal(err)
		}
		if st.ModTime().After(begin) {
			return
		}
	}
}

func TestOverlayBusy(t *testing.T) {
	box := testbox.Sandbox(t, overlaid(t))
	cmd := box.Command("sh", "-c", "echo x >n; echo; read x")
	in, out := pipes(t)
	cmd.Stdin, cmd.Stdout = in[0], out[1]
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out[0].Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got := changes(t, box); len(got) != 1 {
		t.Error(got)
	}
	if _, err := box.Commit(context.Background(), workspace.CommitOptions{}); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("%v", err)
	}
	_ = in[1].Close() // it ends
	if _, err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	commit(t, box)
}

// Changes can be listed and committed at any time, even while everything changes.
func TestOverlayInMotion(t *testing.T) {
	s := overlaid(t)
	box := testbox.Sandbox(t, s)
	// Background processes go on. The files that nobody may read are made so: a chmod would
	// now and then find a directory that a commit has just put there, and close that.
	testbox.Output(t, box, `for n in a b d e; do (while :; do rm -rf $n; mkdir -p $n/$n; echo $n >$n/$n/x; rm -rf $n; (umask 777; echo $n >$n); rm $n; ln -s b $n; done >/dev/null 2>&1 &) ; done`)
	for range 100 {
		if _, err := box.Changes(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := box.Diff(context.Background(), io.Discard); err != nil {
			t.Fatal(err)
		}
		var half *workspace.CommitError
		if _, err := box.Commit(context.Background(), workspace.CommitOptions{}); err != nil && !errors.As(err, &half) {
			t.Fatal(err)
		}
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	commit(t, box)
	for _, c := range changes(t, box) {
		// Nobody may read those with mode 0, and so compare them; a file may have been left empty.
		if !strings.HasSuffix(c, " 2 0 was file 2 0") && !strings.HasSuffix(c, " 0 0 was file 0 0") {
			t.Errorf("left: %q", c)
		}
	}
	if left := script(t, s.FS.Workspace, "ls -A | grep tegmen || true"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

func pipes(t testing.TB) (in, out [2]*os.File) {
	t.Helper()
	for _, p := range []*[2]*os.File{&in, &out} {
		var err error
		if p[0], p[1], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = p[0].Close(), p[1].Close() })
	}
	return in, out
}

// A process of the host swaps a directory for a link while changes are committed, over and over. Nothing outside
// changes.
func TestOverlayLinksAreNotFollowed(t *testing.T) {
	testenv.Long(t)
	s := overlaid(t)
	ws, outside := s.FS.Workspace, testenv.Dir(t)
	script(t, outside, "mkdir sub; echo secret >y; echo secret >sub/x")
	owned(t, outside)
	before := script(t, outside, everything)
	if err := os.Symlink(outside, ws+"/swap"); err != nil {
		t.Fatal(err)
	}
	owned(t, ws)
	box := testbox.Sandbox(t, s)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				// It may have been removed.
				_ = unix.Renameat2(unix.AT_FDCWD, ws+"/d", unix.AT_FDCWD, ws+"/swap", unix.RENAME_EXCHANGE)
			}
		}
	}()
	committed, failed := 0, 0
	for i := range 60 {
		testbox.Output(t, box, "rm -rf d; mkdir -p d/sub; echo "+strings.Repeat("x",
			i)+" | tee d/y d/sub/x d/new >d/sub/new; chmod 700 d/sub; ln -sf / d/link")
		if _, err := box.Commit(context.Background(), workspace.CommitOptions{Force: true}); err != nil {
			failed++
		} else {
			committed++
		}
	}
	close(stop)
	<-done
	t.Logf("%d committed, %d failed", committed, failed)
	if now := script(t, outside, everything); now != before {
		t.Errorf("outside there is now %s", now)
	}
}

func TestOverlayHostile(t *testing.T) {
	testenv.Long(t)
	t.Run("forged", func(t *testing.T) {
		testenv.Need(t, testenv.Program("python3"))
		s := overlaid(t)
		box := testbox.Sandbox(t, s)
		res := testbox.Run(t, box, "python3", "-c", `
import os, stat
for what in (lambda: os.mknod("a2", 0o600 | stat.S_IFCHR, 0), lambda: os.mknod("a3", 0o600 | stat.S_IFCHR, os.makedev(1, 3))):
    try: what(); print("made a device")
    except OSError as e: print(e.errno)
for path in ("d", "a"):
    for name in ("opaque", "whiteout", "redirect", "metacopy", "origin"):
        try: os.setxattr(path, "user.overlay." + name, b"y")
        except OSError: pass
    try: os.setxattr(path, "trusted.overlay.opaque", b"y")
    except OSError: pass
`)
		if res.Outcome != engine.OutcomeOK || strings.Contains(string(res.Stdout), "made") {
			t.Errorf("%+v", res)
		}
		if got := changes(t, box); len(got) > 0 {
			t.Errorf("%q", got)
		}
	})
	t.Run("deep", func(t *testing.T) {
		s := overlaid(t)
		box := testbox.Sandbox(t, s)
		deeper := func(times, from string) {
			if res := testbox.Run(t, box, "python3", "-c",
				"import os\nos.chdir('"+from+"')\n"+
					"for i in range("+times+"): os.mkdir('x'); os.chdir('x')"); res.Outcome != engine.OutcomeOK {
				t.Fatalf("%+v", res)
			}
		}
		deeper("1900", ".")
		if got := changes(t, box); len(got) != 1900 {
			t.Errorf("%d changes", len(got))
		}
		commit(t, box)
		deeper("2100", "e")
		if list, err := box.Changes(context.Background()); !errors.Is(err, unix.ENAMETOOLONG) {
			t.Errorf("deeper than a path can be: %d changes, %v", len(list), err)
		}
	})
	t.Run("many", func(t *testing.T) {
		testenv.Need(t, testenv.Program("python3"))
		s := overlaid(t)
		s.Limits.TmpFiles = 200000
		box := testbox.Sandbox(t, s)
		if res := testbox.Run(t, box, "python3", "-c", "import os\nfor i in range(100000): os.close(os.open('%s/f%d' % ('d' if i % 2 else 'e', i), os.O_CREAT))"); res.Outcome != engine.OutcomeOK {
			t.Fatalf("%+v", res)
		}
		begin := time.Now()
		if got := changes(t, box); len(got) != 100000 {
			t.Errorf("%d changes", len(got))
		}
		t.Logf("100000 changes listed in %v", time.Since(begin))
		begin = time.Now()
		commit(t, box)
		t.Logf("and committed in %v", time.Since(begin))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		testbox.Output(t, box, "touch n")
		if _, err := box.Changes(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("large", func(t *testing.T) {
		s := overlaid(t)
		s.Limits.Workspace = engine.MiB
		box := testbox.Sandbox(t, s)
		// Reading a hole of a terabyte would take half an hour.
		testbox.Output(t, box, "truncate -s 1000000000 h; i=0; while [ $i -lt 1000 ]; do ln h h$i; i=$((i+1)); done")
		commit(t, box)
		if got := strings.Fields(script(t, s.FS.Workspace, "du -sk .")); len(got[0]) > 4 {
			t.Errorf("it takes %s KiB", got[0])
		}
		testbox.Output(t, box, "head -c 500000 /dev/zero | tr '\\0' x >m; for i in 1 2 3 4 5; do ln m m$i; done")
		if _, err := box.Commit(context.Background(), workspace.CommitOptions{}); err == nil ||
			!strings.Contains(err.Error(), "hard links") {
			t.Errorf("%v", err)
		}
		testbox.Output(t, box, "rm m2 m3 m4 m5")
		commit(t, box)
		if got := script(t, s.FS.Workspace, "stat -c %h m m1; cmp m m1"); got != "1\n1\n" {
			t.Error(got)
		}
	})
	t.Run("modes", func(t *testing.T) {
		s := overlaid(t)
		box := testbox.Sandbox(t, s)
		testbox.Output(t, box, "cp /bin/true t; chmod 6755 t; mkdir x; chmod 3777 x")
		commit(t, box)
		if got := script(t, s.FS.Workspace, "stat -c %a t x; stat -c %U t"); !strings.HasPrefix(got, "755\n777\n") ||
			os.Geteuid() == 0 && got != "755\n777\nnobody\n" {
			t.Error(got)
		}
	})
	t.Run("skipped", func(t *testing.T) {
		s := overlaid(t)
		box := testbox.Sandbox(t, s)
		testbox.Output(t, box, "rm -r d a; mkfifo d a; echo n >n")
		done := commit(t, box)
		if len(done.Applied) != 1 || len(done.Skipped) != 5 {
			t.Errorf("%+v", done)
		}
		if got := script(t, s.FS.Workspace, "cat a d/y n"); got != "a\ny\nn\n" {
			t.Error(got)
		}
	})
}
