//go:build linux

package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/workspace"
)

// overlaid returns a Spec with a workspace of some files, under an overlay in memory.
func overlaid(t testing.TB) engine.Spec {
	t.Helper()
	testenv.Need(t, testenv.MemoryUpper)
	return overlaidFiles(t)
}

func overlaidFiles(t testing.TB) engine.Spec {
	t.Helper()
	ws := testenv.Dir(t)
	script(t, ws, `mkdir -p d/sub e; echo a >a; echo b >b; echo x >d/sub/x; echo y >d/y; ln -s a l; chmod 755 b; printf 'no end' >e/f`)
	owned(t, ws)
	return engine.Spec{FS: engine.FS{Workspace: ws, WorkspaceMode: engine.WorkspaceOverlay}}
}

// owned gives a directory to the account of guests.
func owned(t testing.TB, dir string) {
	t.Helper()
	if os.Geteuid() == 0 {
		script(t, dir, "chown -hR 65534:65534 .")
	}
}

// script runs on the host.
func script(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v, %s", script, err, out)
	}
	return string(out)
}

// onDisk is overlaid with an upper on disk.
func onDisk(t testing.TB) engine.Spec {
	t.Helper()
	s := overlaidFiles(t)
	s.FS.Upper = testenv.Dir(t)
	testenv.Need(t, testenv.Upper(s.FS.Upper))
	owned(t, s.FS.Upper)
	return s
}

// bothUppers runs a test with each kind of upper.
func bothUppers(t *testing.T, f func(t *testing.T, s engine.Spec)) {
	t.Run("memory", func(t *testing.T) { f(t, overlaid(t)) })
	t.Run("disk", func(t *testing.T) { f(t, onDisk(t)) })
}

func changes(t testing.TB, box *engine.Sandbox) (lines []string) {
	t.Helper()
	list, err := box.Changes(testbox.Within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		line := fmt.Sprintf("%s %s %s %d %o", c.Path, c.Kind, c.Type, c.Size, c.Mode)
		if c.Kind == workspace.Modified {
			line += fmt.Sprintf(" was %s %d %o", c.Was.Type, c.Was.Size, c.Was.Mode)
		}
		lines = append(lines, line)
	}
	return lines
}

func commit(t testing.TB, box *engine.Sandbox) *workspace.Committed {
	t.Helper()
	done, err := box.Commit(testbox.Within(t, time.Minute), workspace.CommitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// everything lists a directory with find and checksums, inside or outside.
const everything = `find . -mindepth 1 -printf '%p %y %m %l\n' | sort; find . -type f -exec cksum {} + | sort -k3`

func TestOverlayChanges(t *testing.T) {
	testenv.Long(t)
	for _, c := range []struct {
		name, script string
		want         []string
	}{
		{"nothing", "cat a >/dev/null; find . >/dev/null", nil},
		{"opened, written as it was", "cp a /tmp/a; cat /tmp/a >a; touch b; chmod 700 d; chmod 755 d; echo >n; rm n", nil},
		{"a new file", "echo new >n", []string{"n created file 4 644"}},
		{"a change", "echo c >a", []string{"a modified file 2 644 was file 2 644"}},
		{"a mode", "chmod 640 a", []string{"a modified file 2 640 was file 2 644"}},
		{"a mode of a directory", "chmod 700 d", []string{"d modified dir 0 700 was dir 0 755"}},
		{"removed", "rm a", []string{"a deleted file 2 644"}},
		{"a directory removed", "rm -r d", []string{"d deleted dir 0 755", "d/sub deleted dir 0 755",
			"d/sub/x deleted file 2 644", "d/y deleted file 2 644"}},
		{"a directory made again", "rm -r d; mkdir d; echo y >d/y",
			[]string{"d/sub deleted dir 0 755", "d/sub/x deleted file 2 644"}},
		{"moved", "mv a c; mv d f", []string{"a deleted file 2 644", "c created file 2 644", "d deleted dir 0 755",
			"d/sub deleted dir 0 755", "d/sub/x deleted file 2 644", "d/y deleted file 2 644",
			"f created dir 0 755", "f/sub created dir 0 755", "f/sub/x created file 2 644", "f/y created file 2 644"}},
		{"a file for a directory", "rm -r d; echo d >d",
			[]string{"d modified file 2 644 was dir 0 755", "d/sub deleted dir 0 755", "d/sub/x deleted file 2 644",
				"d/y deleted file 2 644"}},
		{"a directory for a file", "rm a; mkdir a; ln -s / a/root",
			[]string{"a modified dir 0 755 was file 2 644", "a/root created symlink 1 777"}},
		{"a link", "ln -sfn b l", []string{"l modified symlink 1 777 was symlink 1 777"}},
		{"kept from its owner", "mkdir -p z/z; echo z >z/z/z; chmod 0 z/z/z z/z z",
			[]string{"z created dir 0 0", "z/z created dir 0 0", "z/z/z created file 2 0"}},
		{"odd names", "touch \"$(printf 'x\\ny')\" .wh.a; mkdir .wh..wh..opq",
			[]string{".wh..wh..opq created dir 0 755", ".wh.a created file 0 644", "x\ny created file 0 644"}},
		{"others", "mkfifo p; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'",
			[]string{"p created fifo 0 644", "s created socket 0 755"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothUppers(t, func(t *testing.T, s engine.Spec) {
				before := script(t, s.FS.Workspace, everything)
				box := testbox.Sandbox(t, s)
				testbox.Output(t, box, c.script)
				if got := changes(t, box); !slices.Equal(got, c.want) {
					t.Errorf("while it lives: got %q, want %q", got, c.want)
				}
				if err := box.Close(); err != nil {
					t.Fatal(err)
				}
				if got := changes(t, box); !slices.Equal(got, c.want) {
					t.Errorf("afterwards: got %q, want %q", got, c.want)
				}
				if now := script(t, s.FS.Workspace, everything); now != before {
					t.Errorf("the workspace itself: %s", now)
				}
			})
		})
	}
}

// After a commit the host has what the guest saw, and so it has after applying the patch.
func TestOverlayCommit(t *testing.T) {
	testenv.Need(t, testenv.Program("git"))
	bothUppers(t, func(t *testing.T, s engine.Spec) {
		ws := s.FS.Workspace
		patched := testenv.Dir(t)
		script(t, ws, "cp -a . "+patched)
		box := testbox.Sandbox(t, s)
		for _, work := range []string{
			`echo more >>a; echo 'spaced' >'n n'; printf '%s' 'no end' >d/y; rm b; chmod 600 e/f`,
			`rm -r d; mkdir d; seq 1000 >d/long; ln -s ../outside l2; ln -sfn b l`,
			`sed -i 5d d/long; echo again >b; rm -r e; echo e >e; chmod +x e; touch empty`,
			`rm a; mkdir -p a/deep; seq 50 >"a/deep/$(printf 'x\ty')"; head -c 300000 /dev/urandom >big`,
			`rm -r a d; mkdir -m 0555 ro; dd if=/dev/zero of=hole bs=1 count=1 seek=3000000 2>/dev/null`,
		} {
			inside := testbox.Output(t, box, work+"; "+everything)
			var diff strings.Builder
			if err := box.Diff(testbox.Within(t, time.Minute), &diff); err != nil {
				t.Fatal(err)
			}
			if done := commit(t, box); len(done.Skipped) > 0 || len(done.Applied) == 0 {
				t.Errorf("%+v", done)
			}
			if now := script(t, ws, everything); strings.TrimSpace(now) != inside {
				t.Errorf("%s: inside\n%s\noutside\n%s", work, inside, now)
			}
			if left := changes(t, box); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if strings.Contains(diff.String(), "Binary") {
				script(t, patched, "find . -mindepth 1 -delete; cp -a "+ws+"/. .")
				continue
			}
			apply := exec.Command("git", "apply", "-")
			apply.Dir, apply.Stdin = patched, strings.NewReader(diff.String())
			if out, err := apply.CombinedOutput(); err != nil {
				t.Errorf("%v, %s, %s", err, out, diff.String())
			}
			if out, err := exec.Command("diff", "-r", "--no-dereference", ws, patched).CombinedOutput(); err != nil {
				t.Errorf("%s: patched, there are other files: %s\n%s", work, out, diff.String())
			}
		}
	})
}

func TestOverlayQuota(t *testing.T) {
	s := overlaid(t)
	s.Limits.Workspace, s.Limits.TmpFiles = 2*engine.MiB, 100
	before := script(t, s.FS.Workspace, everything)
	box := testbox.Sandbox(t, s)
	for _, c := range []string{"head -c 3000000 /dev/zero >n",
		"cp a /tmp/x; for i in $(seq 200); do : >f$i || exit 1; done", "head -c 3000000 /dev/zero >>a"} {
		if res := testbox.Run(t, box, "sh", "-c", c); res.Outcome != engine.OutcomeExit ||
			!strings.Contains(string(res.Stderr), "No space left on device") {
			t.Errorf("%s: %+v", c, res)
		}
	}
	if now := script(t, s.FS.Workspace, everything); now != before {
		t.Errorf("the workspace itself: %s", now)
	}
}

func TestOverlayOfOtherNames(t *testing.T) {
	s := overlaid(t)
	real := s.FS.Workspace
	link := testenv.Dir(t) + "/link"
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	s.FS.Workspace = link
	box := testbox.Sandbox(t, s)
	if got := testbox.Output(t, box, "echo 1 >n; cat "+real+"/n "+link+"/n; pwd -P"); got != "1\n1\n"+real {
		t.Error(got)
	}
	if got := changes(t, box); len(got) != 1 {
		t.Error(got)
	}
}

// In a root file system that is under an overlay itself, which makes the directories for it, and with mounts on top.
func TestOverlayInAnotherRoot(t *testing.T) {
	s := overlaid(t)
	root := testenv.Dir(t)
	script(t, root, "mkdir -p bin proc dev tmp; cp /bin/busybox bin/sh")
	s.FS.Root, s.FS.Overlay = root, true
	s.FS.Mounts = []engine.Mount{testbox.Bind("/etc/ssl/certs", s.FS.Workspace+"/e"),
		{Type: engine.MountTmpfs, Target: s.FS.Workspace + "/d"}}
	box := testbox.Sandbox(t, s)
	testbox.Output(t, box, "echo 1 >n; echo 2 >d/n; ! echo 3 >e/n")
	if got := changes(t, box); len(got) != 1 || got[0] != "n created file 2 644" {
		t.Errorf("%q", got)
	}
	commit(t, box)
	s.FS.Mounts = []engine.Mount{{Type: engine.MountTmpfs, Target: s.FS.Workspace + "/nope"}}
	if _, err := testbox.Open(t).Start(context.Background(), s); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("a mount point that would have to be made in it: %v", err)
	}
}

// A guest reaches neither a daemon of the host that listens in the workspace nor a FIFO.
func TestOverlayDaemonsAreOutOfReach(t *testing.T) {
	testenv.Need(t, testenv.Program("python3"))
	s := overlaid(t)
	l, err := net.Listen("unix", s.FS.Workspace+"/sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(unix.Mkfifo(s.FS.Workspace+"/pipe", 0o666),
		os.Chmod(s.FS.Workspace+"/sock", 0o777)); err != nil {
		t.Fatal(err)
	}
	owned(t, s.FS.Workspace)
	reader, err := os.OpenFile(s.FS.Workspace+"/pipe", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	const try = `
import os, socket
try: socket.socket(socket.AF_UNIX).connect("sock"); print("connected")
except OSError as e: print(e.strerror)
try: os.open("pipe", os.O_WRONLY | os.O_NONBLOCK); print("opened")
except OSError as e: print(e.strerror)`
	if res := testbox.Run(t, testbox.Sandbox(t, s), "python3", "-c",
		try); string(res.Stdout) != "Connection refused\nNo such device or address\n" {
		t.Errorf("%+v", res)
	}
}

func TestOverlayAfterTheEnd(t *testing.T) {
	bothUppers(t, func(t *testing.T, s engine.Spec) {
		box := testbox.Sandbox(t, s)
		cmd := box.Command("sh", "-c", "echo 1 >n; sleep 1000")
		cmd.Wall = 300 * time.Millisecond
		if res, err := cmd.Run(); err != nil || res.Outcome != engine.OutcomeTimeout {
			t.Fatalf("%+v, %v", res, err)
		}
		<-box.Done()
		if got := changes(t, box); len(got) != 1 {
			t.Error(got)
		}
		commit(t, box)
		if _, err := os.Stat(s.FS.Workspace + "/n"); err != nil {
			t.Error(err)
		}
	})
}

func TestOverlayDiscard(t *testing.T) {
	bothUppers(t, func(t *testing.T, s engine.Spec) {
		for _, closedFirst := range []bool{true, false} {
			box := testbox.Sandbox(t, s)
			testbox.Output(t, box, "mkdir -p x/y; echo 1 >x/y/n; chmod 0 x/y x; rm -r d")
			if closedFirst {
				if err := box.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(box.Discard(), box.Discard(), box.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := box.Changes(context.Background()); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("%v", err)
			}
			if _, err := box.Commit(context.Background(), workspace.CommitOptions{}); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("%v", err)
			}
			if s.FS.Upper != "" {
				nothingMore(t, s.FS.Upper, []string{s.FS.Upper}, 0)
			}
		}
	})
	t.Run("by the engine", func(t *testing.T) {
		s := onDisk(t)
		eng, err := engine.Open(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := eng.Start(context.Background(), s); err != nil {
			t.Fatal(err)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
		nothingMore(t, s.FS.Upper, []string{s.FS.Upper}, 0)
	})
	t.Run("failed start", func(t *testing.T) {
		s := onDisk(t)
		plan, err := testbox.Open(t).Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(s.FS.Workspace, s.FS.Workspace+"-"), os.Mkdir(s.FS.Workspace, 0o755),
			os.RemoveAll(s.FS.Workspace+"-")); err != nil {
			t.Fatal(err)
		}
		if _, err := testbox.Open(t).StartPlan(context.Background(), plan); !errors.Is(err, engine.ErrChanged) {
			t.Errorf("%v", err)
		}
		nothingMore(t, s.FS.Upper, []string{s.FS.Upper}, 0)
	})
}

func TestOverlayIsAsked(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{})
	if _, err := box.Changes(context.Background()); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if err := box.Discard(); err != nil {
		t.Error(err)
	}
	h := testbox.Landlock.Host(t)
	s := overlaid(t)
	s.Degrade = []engine.Protection{engine.ProtectNamespaces}
	if h.Landlock >= 6 {
		if _, err := engine.Compile(s, h); !errors.Is(err, engine.ErrUnsupported) {
			t.Errorf("without namespaces: %v", err)
		}
	}
}
