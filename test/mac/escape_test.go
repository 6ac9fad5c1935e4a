//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// act is something that a sandbox must stop. It prints ESCAPED when it worked. An
// act leaves no harm behind on a Mac where it works: it makes only what has MARK in
// its name, and removes that.
//
// Its environment: MARK, a name that is used nowhere else; HOST, a directory of
// the host with secret, gone, own and an executable prog; NODE, secret as
// device/inode; USERHOME, the user's home directory; PID, a process of the host, and
// TTY, a terminal; TCP, TCP6 and UDP, ports of the host's loopback; SOCK and DGRAM,
// Unix sockets. It starts in a workspace with .git/hooks and .git/config.
type act struct {
	name    string
	outside where
	script  string
}

// where says whether an act works outside a sandbox.
type where int

const (
	never   where = iota + 1 // not tried: it takes root, or would ask the user
	always                   // it works, or else shows nothing
	perhaps                  // it works on some machines, and is harmless
)

// groups are all acts, with the program that runs them.
var groups = []struct {
	name, shell string
	acts        []act
}{
	{"files", "sh", fileActs}, {"files", "python3", filePython},
	{"network", "python3", networkActs},
	{"processes", "python3", processActs},
	{"services", "sh", serviceActs}, {"services", "python3", servicePython},
	{"privileges", "sh", privilegeActs},
}

// The acts are well formed. Any machine can check that without running one.
func TestActsAreWellFormed(t *testing.T) {
	needs(t, "python3")
	seen := make(map[string]bool)
	for _, group := range groups {
		check, text := exec.Command("sh", "-n"), ""
		if group.shell == "python3" {
			check = exec.Command("python3", "-c", "import sys; compile(sys.stdin.read(), 'acts', 'exec')")
		}
		for _, a := range group.acts {
			name := group.name + "/" + a.name
			if seen[name] || a.outside == 0 || !strings.Contains(a.script, "ESCAPED") && !strings.Contains(a.script, "$HOST/") {
				t.Errorf("%s is there twice, or has not all", name)
			}
			seen[name] = true
			text += begun[group.shell] + a.script + "\n"
		}
		check.Stdin = strings.NewReader(text)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", group.name, err, out)
		}
	}
	t.Logf("%d acts", len(seen))
}

// TestEscapes never runs an act unless it is confined.
func TestEscapes(t *testing.T) {
	testenv.Need(t, testenv.Seatbelt)
	needs(t, "python3")
	eng := open(t, nil)
	for _, group := range groups {
		for _, a := range group.acts {
			t.Run(group.name+"/"+a.name, func(t *testing.T) {
				if a.outside != never {
					out := newScene(t).outside(t, group.shell, a.script)
					switch worked := strings.Contains(out, "ESCAPED"); {
					case worked:
						t.Log("works outside")
					case a.outside == always:
						t.Errorf("does not work outside, so it would show nothing: %s", out)
					default:
						t.Logf("shows nothing on this machine: %s", out)
					}
				}
				s := newScene(t)
				before := s.host(t)
				out := s.inside(t, eng, group.shell, a.script)
				if !strings.Contains(out, "BEGUN") || strings.Contains(out, "ESCAPED") {
					t.Errorf("inside: %s", out)
				}
				if after := s.host(t); !slices.Equal(before, after) {
					t.Errorf("the host's directory was %q, is %q", before, after)
				}
			})
		}
	}
}

// scene is what an act deals with.
type scene struct {
	ws, dir string
	env     []string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{ws: dir(t), dir: dir(t)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(s.ws, ".git", "hooks"), 0o755))
	must(os.WriteFile(filepath.Join(s.ws, ".git", "config"), []byte("[core]\n"), 0o644))
	for name, text := range map[string]string{"secret": "secret", "gone": "x", "own": "x",
		"prog": "#!/bin/sh\necho ESCAPED\n"} {
		must(os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755))
	}
	sockets := dir(t) // apart, since the acts look whether HOST has changed
	home, err := os.UserHomeDir()
	must(err)
	info, err := os.Stat(filepath.Join(s.dir, "secret"))
	must(err)
	st := info.Sys().(*syscall.Stat_t)
	s.env = []string{
		"MARK=tegmen-test-" + strconv.Itoa(os.Getpid()), "HOST=" + s.dir, "USERHOME=" + home,
		fmt.Sprintf("NODE=%d/%d", st.Dev, st.Ino), "AGENT=" + os.Getenv("SSH_AUTH_SOCK"),
		"TTY=" + s.terminal(t), "PID=" + strconv.Itoa(s.victim(t)),
		"TCP=" + listen(t, "tcp4", "127.0.0.1:0"), "TCP6=" + listen(t, "tcp6", "[::1]:0"), "UDP=" +
			packets(t, "udp4", "127.0.0.1:0"),
		"SOCK=" + listen(t, "unix", filepath.Join(sockets, "s")), "DGRAM=" +
			packets(t, "unixgram", filepath.Join(sockets, "d")),
	}
	return s
}

// terminal opens a terminal of the host.
func (s *scene) terminal(t *testing.T) string {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = master.Close(), slave.Close() }) // read by nobody
	return slave.Name()
}

// victim starts a process of the host. It is no program of Apple's: those are protected anyway.
func (s *scene) victim(t *testing.T) int {
	t.Helper()
	cmd := testbox.Helper(t, "victim")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // it ends then, if it has not
		if err := cmd.Wait(); err != nil {
			t.Errorf("the process of the host: %v", err)
		}
	})
	if _, err := io.ReadFull(stdout, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// listen accepts connections. If there is no such network, nothing listens at the address.
func listen(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		return "1"
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return end(l.Addr())
}

func packets(t *testing.T, network, address string) string {
	t.Helper()
	c, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return end(c.LocalAddr())
}

// end is a port, or a path.
func end(a net.Addr) string {
	if _, port, err := net.SplitHostPort(a.String()); err == nil {
		return port
	}
	return a.String()
}

// begun reports whether an act was tried at all.
var begun = map[string]string{"sh": "echo BEGUN\n",
	"python3": "import ctypes, os, socket, sys\nfrom os import environ as env\nprint('BEGUN', flush=True)\n"}

func (s *scene) outside(t *testing.T, shell, script string) string {
	t.Helper()
	cmd := exec.CommandContext(testbox.Within(t, limit), shell, "-c", begun[shell]+script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.ws, append(os.Environ(), s.env...), time.Second
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s (%v)", out, err)
}

func (s *scene) inside(t *testing.T, eng *engine.Engine, shell, script string) string {
	t.Helper()
	box := start(t, eng, engine.Spec{FS: engine.FS{Workspace: s.ws}, Limits: engine.Limits{Wall: 30 * time.Second}})
	cmd := box.CommandContext(testbox.Within(t, limit), shell, "-c", begun[shell]+script)
	cmd.ExtraEnv = s.env
	res, err := cmd.Run()
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%s%s (%s %d)", res.Stdout, res.Stderr, res.Outcome, res.ExitCode)
}

// host returns what can be seen of HOST.
func (s *scene) host(t *testing.T) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(e.Name(), info.Mode(), info.Size(), info.ModTime()))
	}
	return list
}
