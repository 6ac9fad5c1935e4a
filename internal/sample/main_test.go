//go:build linux && (amd64 || arm64)

package sample_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/sample"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testbox.Main(m, nil)) }

const mib = 1 << 20

// A box is a sandbox that is measured.
type box struct {
	*engine.Sandbox
	t testing.TB
	s *sample.Sampler
}

func start(t testing.TB, mounts ...engine.Mount) *box {
	t.Helper()
	testenv.Need(t, testenv.Program("python3"))
	sandbox := testbox.Sandbox(t, engine.Spec{
		Keep: true, FS: engine.FS{Mounts: mounts}, Limits: engine.Limits{Pids: 4096, Tmp: engine.GiB},
	})
	s, err := sample.Open(first(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fail(t, s.Close()) })
	return &box{sandbox, t, s}
}

func fail(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// first is the child of this process that is first in a pid namespace.
func first(t testing.TB) int {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lists {
		b, _ := os.ReadFile(name) // a thread that has ended
		for _, pid := range strings.Fields(string(b)) {
			status, _ := os.ReadFile("/proc/" + pid + "/status")
			_, ids, _ := strings.Cut(string(status), "\nNSpid:")
			ids, _, _ = strings.Cut(ids, "\n")
			if f := strings.Fields(ids); len(f) > 1 && f[len(f)-1] == "1" {
				n, err := strconv.Atoi(pid)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	t.Fatal("no sandbox")
	return 0
}

// A talk is with a program that prints a line when it has done something, and
// goes on when it is sent one.
type talk struct {
	t   testing.TB
	in  *os.File
	out *bufio.Reader
}

const prelude = `
import mmap, os, resource, signal, sys, threading, time
def say(*a): print(*a, flush=True); sys.stdin.readline()
`

// python runs a program in the sandbox, until the test ends.
func (b *box) python(code string) *talk {
	b.t.Helper()
	cmd := b.Command("python3", "-c", prelude+code)
	tk, in, out := newTalk(b.t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	fail(b.t, in.Close())
	fail(b.t, out.Close())
	b.t.Cleanup(func() {
		_ = tk.in.Close() // it ends
		_ = cmd.Signal(unix.SIGKILL)
		_, _ = cmd.Wait()
	})
	return tk
}

// onHost runs one as a child of this process, in a process group of its own.
func onHost(t testing.TB, code string) (tk *talk, pid int) {
	t.Helper()
	testenv.Need(t, testenv.Program("python3"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cmd := exec.CommandContext(ctx, "python3", "-c", prelude+code)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tk, in, out := newTalk(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fail(t, in.Close())
	fail(t, out.Close())
	t.Cleanup(func() {
		_ = tk.in.Close()
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
		cancel()
	})
	return tk, cmd.Process.Pid
}

func newTalk(t testing.TB) (tk *talk, in, out *os.File) {
	t.Helper()
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = from.Close() })
	return &talk{t, to, bufio.NewReader(from)}, in, out
}

// hears waits for the next line.
func (tk *talk) hears() string {
	tk.t.Helper()
	line, err := tk.out.ReadString('\n')
	if err != nil {
		tk.t.Fatalf("%q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

func (tk *talk) goOn() {
	tk.t.Helper()
	_, err := io.WriteString(tk.in, "\n")
	fail(tk.t, err)
}

// now measures exactly.
func now(t testing.TB, s *sample.Sampler) sample.Sample {
	t.Helper()
	return whole(t, s, 1)
}

// whole measures until that is not partial.
func whole(t testing.TB, s *sample.Sampler, limit int64) sample.Sample {
	t.Helper()
	for range 1000 {
		got, err := s.Sample(limit)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Partial {
			return got
		}
	}
	t.Fatal("never whole")
	return sample.Sample{}
}
