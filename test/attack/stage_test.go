//go:build linux

package attack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// stressUID is the account of guests on the host if the engine runs as root. Nobody else has it.
const stressUID = 54321

// stage is where stress programs run: an engine and some files of the host.
type stage struct {
	*testing.T
	eng   *engine.Engine
	shown string // mounted read-only
	work  string // where each guest has a workspace of its own
	uid   int    // of guests, on the host
}

// newStage surveys the host before the test and after it, with the engine still there, and keeps a neighbour answering
// meanwhile.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, eng: testbox.Open(t), uid: os.Getuid()}
	dir := testenv.Dir(t)
	s.shown, s.work = filepath.Join(dir, "shown"), filepath.Join(dir, "work")
	hidden := filepath.Join(dir, "hidden")
	// Everybody may write to all of them: only the sandbox is in the way.
	for _, d := range []string{s.shown, filepath.Join(s.shown, "d"), hidden} {
		file := filepath.Join(d, "file")
		if err := errors.Join(os.Mkdir(d, 0o777), os.Chmod(d, 0o777), os.WriteFile(file, []byte("of the host\n"), 0o666),
			os.Chmod(file, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(s.work, 0o755); err != nil {
		t.Fatal(err)
	}
	if s.uid == 0 {
		s.uid = stressUID
	}

	segment, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o666|unix.IPC_CREAT)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := unix.SysvShmCtl(segment, unix.IPC_RMID, nil); err != nil {
			t.Error(err)
		}
	})

	// The first sandbox leaves what an engine keeps for the next.
	s.guest(time.Minute, "true")
	kept := keys(s.uid)
	before, complaints := look(t, s.uid, s.shown, hidden), kernelComplaints()
	if len(before) < 1000 {
		t.Fatalf("only %d things are seen of the host", len(before))
	}
	heart, neighbour := beat(), newNeighbour(s)
	t.Cleanup(func() {
		neighbour.end()
		if gap := heart.end(); gap > 10*time.Second {
			t.Errorf("the host process was held up for %v", gap)
		}
		s.settle(kept)
		for _, change := range look(t, s.uid, s.shown, hidden).changes(before) {
			t.Errorf("changed: %s", change)
		}
		if now := kernelComplaints(); now > complaints {
			t.Errorf("the kernel complains of itself %d times, before %d", now, complaints)
		}
	})
	return s
}

// settle waits until no guest is left and the kernel has freed their keys.
func (s *stage) settle(kept int) {
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, has := guests(s.uid), keys(s.uid)
		if len(left) == 0 && has <= kept {
			return
		}
		if time.Now().After(deadline) {
			s.Errorf("left on the host: processes %q, %d keys where there were %d", left, has, kept)
			return
		}
		<-tick.C
	}
}

// workspace makes a directory for one guest, which may lock it against all others.
func (s *stage) workspace() (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp(s.work, ""); err != nil {
		return "", nil, err
	}
	remove = func() error {
		_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, _ error) error {
			if e != nil && e.IsDir() {
				_ = os.Chmod(path, 0o700) // what cannot be removed is reported then
			}
			return nil
		})
		return os.RemoveAll(dir)
	}
	if os.Geteuid() == 0 {
		err = os.Chown(dir, s.uid, s.uid)
	}
	return dir, remove, err
}

// spec is strict: it bounds memory by address space and by the number of processes.
func (s *stage) spec(workspace string) engine.Spec {
	return engine.Spec{
		Keep: true,
		Limits: engine.Limits{
			CPUTime: time.Minute, Pids: 200, Files: 512, FileSize: 32 * engine.MiB, Tmp: 64 * engine.MiB, TmpFiles: 10000, AddressSpace: 2 * engine.GiB,
		},
		FS: engine.FS{Workspace: workspace, Mounts: []engine.Mount{
			{Type: engine.MountBind, Source: s.shown, Target: "/shown", ReadOnly: true},
			testbox.Bind(workspace, "/work"),
		}},
	}
}

// guest runs a program in a sandbox, for that long at most. The program may end badly.
func (s *stage) guest(wall time.Duration, name string, args ...string) *engine.Result {
	res, err := s.perform(wall, name, args)
	if err != nil {
		s.Errorf("%s %q: %v", name, args, err)
		return &engine.Result{}
	}
	if res.Usage.Wall > wall+10*time.Second {
		s.Errorf("%s %q took %v of %v", name, args, res.Usage.Wall, wall)
	}
	return res
}

func (s *stage) perform(wall time.Duration, name string, args []string) (res *engine.Result, err error) {
	dir, remove, err := s.workspace()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	box, err := s.eng.Start(s.Context(), s.spec(dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	cmd := box.Command(name, args...)
	cmd.Dir, cmd.Wall = "/tmp", wall
	return cmd.Run()
}

// neighbour is another sandbox of the engine, in use all the time.
type neighbour struct {
	*stage
	stop    atomic.Bool
	done    chan struct{}
	answers int
	slowest time.Duration
}

func newNeighbour(s *stage) *neighbour {
	n := &neighbour{stage: s, done: make(chan struct{})}
	box := testbox.Start(s, s.eng, engine.Spec{})
	go func() {
		defer close(n.done)
		for !n.stop.Load() {
			cmd := box.Command("sh", "-c",
				"read x; echo $((x * 7)); echo kept >>f; tail -n 1 f; set -- /proc/[0-9]*; echo $#; uname -n")
			cmd.Stdin, cmd.Wall = strings.NewReader("6\n"), 30*time.Second
			begin := time.Now()
			res, err := cmd.Run()
			if err != nil || string(res.Stdout) != "42\nkept\n1\nsandbox\n" {
				s.Errorf("neighbour: %+v, %v", res, err)
				return
			}
			n.answers, n.slowest = n.answers+1, max(n.slowest, time.Since(begin))
		}
		if err := box.Close(); err != nil {
			s.Errorf("neighbour: %v", err)
		}
	}()
	return n
}

func (n *neighbour) end() {
	n.stop.Store(true)
	<-n.done
	n.Logf("the neighbour answered %d times, within %v", n.answers, n.slowest)
	if n.answers < 10 || n.slowest > 15*time.Second {
		n.Error("which is too slow")
	}
}
