//go:build linux

package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func bind(src, dst string) engine.Mount {
	return engine.Mount{Type: engine.MountBind, Source: src, Target: dst}
}

// A path that was swapped after Compile is refused, whatever it leads to now.
func TestChangedSinceCompile(t *testing.T) {
	eng := open(t)
	for _, c := range []struct {
		name string
		swap func(dir string) error
	}{
		{"another directory", func(d string) error {
			return errors.Join(os.Rename(d+"/src", d+"/old"), os.Mkdir(d+"/src", 0o755))
		}},
		{"a link", func(d string) error {
			return errors.Join(os.Rename(d+"/src", d+"/old"), os.Symlink("/etc", d+"/src"))
		}},
		{"a link to itself", func(d string) error {
			return errors.Join(os.Rename(d+"/src", d+"/old"), os.Symlink(d+"/old", d+"/src"))
		}},
		{"a file", func(d string) error {
			return errors.Join(os.Remove(d+"/src"), os.WriteFile(d+"/src", nil, 0o644))
		}},
	} {
		for _, templates := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				dir := testenv.Dir(t)
				if err := os.Mkdir(dir+"/src", 0o755); err != nil {
					t.Fatal(err)
				}
				plan, err := eng.Compile(engine.Spec{FS: engine.FS{Mounts: []engine.Mount{bind(dir+"/src", "/m")}}})
				if err != nil {
					t.Fatal(err)
				}
				if templates {
					// Wanted once, so that the next start makes the template.
					if box, err := eng.StartPlan(context.Background(), plan); err != nil {
						t.Fatal(err)
					} else if err := box.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.swap(dir); err != nil {
					t.Fatal(err)
				}
				box, err := eng.StartPlan(context.Background(), plan)
				if err == nil {
					_ = box.Close()
				}
				if !errors.Is(err, engine.ErrChanged) {
					t.Errorf("got %v, want ErrChanged", err)
				}
			})
		}
	}
}

// What a guest writes belongs, on the host, to the user it ran as: never root.
func TestFilesBelongToTheUser(t *testing.T) {
	dir := testenv.Dir(t)
	uid := os.Getuid()
	if uid == 0 {
		uid = 4321
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	box := sandbox(t, engine.Spec{FS: engine.FS{Workspace: dir}, User: &engine.User{}})
	if got := output(t, box, "touch f; mkdir d; id -u; pwd; stat -c %u f"); got != "0\n"+dir+"\n0" {
		t.Errorf("inside: %q", got)
	}
	for _, name := range []string{"f", "d"} {
		if got := ownerOf(t, filepath.Join(dir, name)); got != uid {
			t.Errorf("%s belongs to uid %d outside, want %d", name, got, uid)
		}
	}
}

func TestGuestIsNeverHostRoot(t *testing.T) {
	testenv.Need(t, testenv.Root)
	box := sandbox(t, engine.Spec{User: &engine.User{}})
	mark := marker(500)
	cmd := box.Command("sleep", mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := alive(t, mark)
	if len(pids) != 1 {
		t.Fatalf("%v", pids)
	}
	// Nor is this process anyone else now, whichever threads it started from.
	for range 10 {
		sandbox(t, engine.Spec{})
	}
	if uid := ownerOf(t, "/proc/self"); uid != 0 {
		t.Errorf("this process now belongs to uid %d", uid)
	}
	b, err := os.ReadFile("/proc/" + pids[0] + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == "Uid:" || f[0] == "Gid:" {
			for _, id := range f[1:] {
				if id != "65534" {
					t.Errorf("on the host: %s", line)
				}
			}
		}
		if f := strings.Fields(line); f[0] == "Groups:" && len(f) > 1 {
			t.Errorf("on the host: %s", line)
		}
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A host process that starts something else as another user loses its dumpable
// flag by it, and must be able to start sandboxes all the same; nor does it get
// the flag back.
func TestHostThatIsNotDumpable(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	out, err := reexec("undumpable")
	if err != nil || out != "ok ok 0" {
		t.Errorf("%q, %v; want two starts, and the flag as it was", out, err)
	}
}

func undumpable() {
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		panic(err)
	}
	for range 2 {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			panic(err)
		}
		box, err := eng.Start(context.Background(), engine.Spec{})
		if err != nil {
			panic(err)
		}
		res, err := box.Command("true").Run()
		if err != nil {
			panic(err)
		}
		fmt.Print(res.Outcome, " ")
	}
	// Nothing that is done in the background needs it for a moment any more.
	err = eng.Close()
	flag, ferr := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err := errors.Join(err, ferr); err != nil {
		panic(err)
	}
	fmt.Print(flag)
}

// Sandboxes of one template share nothing that can be written to.
func TestSandboxesAreApart(t *testing.T) {
	eng := open(t)
	a, b := start(t, eng, engine.Spec{}), start(t, eng, engine.Spec{})
	c := start(t, eng, engine.Spec{})
	output(t, a, "echo a >/tmp/x; echo a >/dev/shm/x; echo a >/workspace/x; echo a >/var/tmp/x 2>/dev/null || true")
	for _, other := range []*engine.Sandbox{b, c} {
		if got := output(t, other, "ls /tmp /dev/shm /workspace; ls /proc | grep -c '^[0-9]'"); strings.Contains(got, "x") {
			t.Errorf("another sandbox sees %q", got)
		}
	}
}

func TestManySandboxesLeaveNothing(t *testing.T) {
	eng := open(t)
	for range 100 {
		box, err := eng.Start(context.Background(), engine.Spec{Name: "leave-nothing"})
		if err != nil {
			t.Fatal(err)
		}
		if res := run(t, box, "true"); res.Outcome != engine.OK {
			t.Fatalf("%+v", res)
		}
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left := alive(t, "leave-nothing"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Five hundred at once, each with a command that runs, take no thread each, and
// all go with the engine.
func TestFiveHundredAtOnce(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := threads(t)
	for range 500 {
		box, err := eng.Start(context.Background(), engine.Spec{Name: "five-hundred"})
		if err != nil {
			t.Fatal(err)
		}
		cmd := box.Command("sleep", "1000")
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(alive(t, "five-hundred")); n != 500 {
		t.Errorf("%d sandboxes live", n)
	}
	// Not one each: on a busy machine some wait for the kernel at the same moment.
	if more := threads(t) - before; more > 200 {
		t.Errorf("%d more threads", more)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if left := alive(t, "five-hundred"); len(left) > 0 {
		t.Errorf("left: %d", len(left))
	}
}

func threads(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
