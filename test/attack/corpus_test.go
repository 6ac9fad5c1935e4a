//go:build linux

package attack_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func (c escapeCase) wants(what string) bool { return slices.Contains(c.needs, what) }

// need skips or fails a case if the machine lacks what it needs.
func (c escapeCase) need(t *testing.T, h *corpusHost) {
	t.Helper()
	for _, n := range c.needs {
		switch n {
		case "terminal", "own-terminal":
		case "root":
			testenv.Need(t, testenv.Root)
		case "landlock":
			testenv.Need(t, testenv.Landlock(2))
		case "glibc":
			testenv.Need(t, testenv.Program("ldconfig"))
		case "ipv6":
			if !h.has("TCP6") {
				t.Skip("needs IPv6 on the host")
			}
		default:
			testenv.Need(t, testenv.Program(n))
		}
	}
}

// Each case of the corpus works outside, on the host, as the account of guests, and is refused inside as its header
// says. The servers of the host are visited from outside only.
func TestEscapeCorpus(t *testing.T) {
	testenv.Long(t)
	h := startCorpusHost(t)
	eng := testbox.Open(t)
	shared := testbox.Start(t, eng, h.spec())
	cases := forThisMachine(escapeCases(t))
	t.Run("outside", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.need(t, h)
				got := h.outside(t, c)
				switch {
				case c.outside.has(got):
				case verdict{words: append(c.unproven.words, c.outside.words...)}.has(got):
					t.Skipf("says nothing here: %s outside: %s", got, c.unproven.note)
				default:
					t.Errorf("outside: got %q, want %s", got, c.outside)
				}
			})
		}
	})
	visits := h.visits(t)
	t.Run("inside", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				box := shared
				if c.own {
					box = testbox.Start(t, eng, h.spec())
				} else {
					t.Parallel()
				}
				c.need(t, h)
				got := h.inside(t, c, box, boxed)
				if !c.inside.has(got) {
					t.Errorf("inside: got %q, want %s", got, c.inside)
				}
				if c.name == "clone-parent" && got == "ok" {
					reapOrphan(t)
				}
			})
		}
	})
	if now := h.visits(t); now != visits {
		t.Errorf("the host's servers were visited %s times from outside, and then %s", visits, now)
	}
}

// The same without namespaces, where everything rests on Landlock and the filter.
func TestEscapeCorpusLandlock(t *testing.T) {
	testenv.Long(t)
	eng := testbox.Landlock.Open(t)
	h := startCorpusHost(t)
	v := h.onHost()
	v.tmp = "" // the sandbox's own
	shared := testbox.Start(t, eng, h.landlockSpec())
	visits := h.visits(t)
	t.Cleanup(func() { // which also shows that the host's processes are alive
		if now := h.visits(t); now != visits {
			t.Errorf("the host's servers were visited %s times, and then %s", visits, now)
		}
	})
	for _, c := range forThisMachine(escapeCases(t)) {
		t.Run(c.name, func(t *testing.T) {
			box := shared
			if c.own {
				box = testbox.Start(t, eng, h.landlockSpec())
			} else {
				t.Parallel()
			}
			c.need(t, h)
			if got := h.inside(t, c, box, v); !c.landlock.has(got) {
				t.Errorf("without namespaces: got %q, want %s", got, c.landlock)
			}
		})
	}
}

// landlockSpec returns the Spec of a sandbox without namespaces, which has the paths of the host.
func (h *corpusHost) landlockSpec() engine.Spec {
	s := h.spec()
	s.Degrade = []engine.Protection{engine.ProtectNamespaces}
	for i, m := range s.FS.Mounts {
		s.FS.Mounts[i].Target = m.Source
	}
	return s
}

// boxed is the view from a sandbox of spec.
var boxed = view{"/cases", "/readonly", "/privileged", "/tmp"}

// spec returns the Spec of a sandbox with the cases in it.
func (h *corpusHost) spec() engine.Spec {
	s := engine.Spec{Keep: true, FS: engine.FS{Workspace: h.workspace}}
	for _, m := range []engine.Mount{testbox.Bind(h.dir, boxed.cases), testbox.Bind(h.readonly, boxed.readonly),
		testbox.Bind(h.special, boxed.special)} {
		if m.ReadOnly = true; m.Source != "" {
			s.FS.Mounts = append(s.FS.Mounts, m)
		}
	}
	return s
}

// inside runs a case in a sandbox and returns its word.
func (h *corpusHost) inside(t *testing.T, c escapeCase, box *engine.Sandbox, v view) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := box.CommandContext(ctx, "python3", "-S", filepath.Join(v.cases, c.name+".py"))
	cmd.ExtraEnv = h.environment(v)
	switch {
	case c.wants("own-terminal"):
		cmd.TTY = &engine.WindowSize{Rows: 24, Cols: 80}
	case c.wants("terminal"):
		_, tty := terminal(t)
		cmd.Stdin = tty
	}
	res, err := cmd.Run()
	if err != nil {
		t.Fatalf("inside: %v", err)
	}
	switch {
	case res.Outcome == engine.OutcomeSignal:
		return unix.SignalName(res.Signal)
	case res.Outcome != engine.OutcomeOK:
		t.Fatalf("inside: %s %d\n%s%s", res.Outcome, res.ExitCode, res.Stdout, res.Stderr)
	}
	t.Logf("inside: %s\n%s", strings.TrimSpace(string(res.Stdout)), res.Stderr)
	return strings.TrimSpace(string(res.Stdout))
}

// reapOrphan reaps a dead child of this process that it has not started. The child is in the pid namespace of a
// sandbox, which would not end before.
func reapOrphan(t *testing.T) {
	t.Helper()
	self := fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		stats, err := filepath.Glob("/proc/[0-9]*/status")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range stats {
			b, err := os.ReadFile(name)
			if err != nil {
				continue // ended since
			}
			text := string(b)
			_, pids, _ := strings.Cut(text, "\nNSpid:\t")
			pids, _, _ = strings.Cut(pids, "\n")
			if f := strings.Fields(pids); len(f) > 1 && strings.Contains(text, self) && strings.Contains(text, "\nState:\tZ") {
				pid, err := strconv.Atoi(f[0])
				if err == nil {
					_, err = unix.Wait4(pid, nil, unix.WALL, nil)
				}
				t.Errorf("the guest has left this process a dead child, %d: %v", pid, err)
				return
			}
		}
	}
}
