//go:build linux

package conformance_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A Spec is validated, and limits hold.
func TestSpec(t *testing.T) {
	eng := testbox.Open(t)
	refused := func(t *testing.T, s engine.Spec, is error) {
		t.Helper()
		res, err := eng.RunCode(t.Context(), s, piece{source: "1"}.code(), nil)
		if !errors.Is(err, is) || res != nil {
			t.Errorf("%+v: %+v, %v; want %v", s, res, err, is)
		}
	}
	t.Run("chuk, axio: limits that are none", func(t *testing.T) {
		for _, l := range []engine.Limits{
			{Wall: -1}, {CPUTime: -1}, {CPUs: -1}, {CPUs: math.NaN()}, {Memory: -1}, {AddressSpace: -1}, {Pids: -1},
			{Files: -1}, {FileSize: -1},
			{Tmp: -1}, {TmpFiles: -1}, {Output: -1}, {ToolCalls: -1}, {ToolCallsAtOnce: -1}, {ToolTime: -1}, {Frame: -1},
			{Frame: 100},
		} {
			refused(t, engine.Spec{Limits: l}, engine.ErrInvalid)
		}
		box := testbox.Start(t, eng, engine.Spec{})
		cmd := box.Command("true")
		cmd.Wall = -1
		if _, err := cmd.Run(); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("a command's: %v", err)
		}
	})
	t.Run("chuk: no limit given is one that is there", func(t *testing.T) {
		p, err := eng.Compile(engine.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[engine.LimitName]string)
		for _, l := range p.Limits {
			got[l.Name] = l.Value
		}
		for name, want := range map[engine.LimitName]string{"wall": "1h0m0s", "cputime": "1h0m0s", "pids": "512", "output": "1MiB",
			"toolcalls": "1000", "toolcallsatonce": "32", "frame": "8MiB"} {
			if got[name] != want {
				t.Errorf("%s is %s, want %s", name, got[name], want)
			}
		}
	})
	t.Run("axio: a limit that is asked for is there, or nothing starts", func(t *testing.T) {
		s := engine.Spec{Limits: engine.Limits{Memory: 256 * engine.MiB, CPUs: 1}}
		p, err := eng.Compile(s)
		if errors.Is(err, engine.ErrUnsupported) {
			refused(t, s, engine.ErrUnsupported)
			s.Degrade = []engine.Protection{engine.ProtectCPUs}
			res := testbox.Run(t, testbox.Start(t, eng, s), "true")
			if len(res.Start.Dropped) != 1 {
				t.Errorf("dropped without a word: %+v", res.Start.Dropped)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		enforced := 0
		for _, l := range p.Limits {
			if (l.Name == "memory" || l.Name == "cpus") && l.Enforcers != nil {
				enforced++
			}
		}
		if enforced != 2 {
			t.Errorf("limits %+v", p.Limits)
		}
	})
	t.Run("chuk: limits cannot be raised", func(t *testing.T) {
		piece{limits: engine.Limits{AddressSpace: 512 * engine.MiB, Files: 64}, value: `["ValueError","MemoryError",64]`, source: `
import resource
got = []
try: resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
except (ValueError, OSError) as e: got.append(type(e).__name__)
try: bytearray(600 << 20)
except MemoryError as e: got.append("MemoryError")
got + [resource.getrlimit(resource.RLIMIT_NOFILE)[1]]`}.run(t, eng, nil)
	})
	t.Run("what is not there", func(t *testing.T) {
		refused(t, engine.Spec{FS: engine.FS{Root: "/no/such/root"}}, engine.ErrInvalid)
		for _, lang := range engine.Languages() {
			_, err := eng.RunCode(t.Context(), engine.Spec{Env: []string{"PATH=/no/such/dir"}},
				piece{lang: lang, source: "1"}.code(), nil)
			var missing *engine.ExecError
			if !errors.As(err, &missing) || !missing.NotFound || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", lang, err)
			}
		}
	})
}

// If the machine cannot provide a protection, nothing runs, least of all outside.
func TestFailClosed(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	h, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	h.Seccomp = false
	eng := testbox.OpenWith(t, engine.Options{Host: &h})
	dir := testenv.Dir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(dir, "ran")
	c := piece{source: "open(" + fmt.Sprintf("%q", mark) + ", 'w')"}.code()
	t.Run("chuk, axio: refused", func(t *testing.T) {
		res, err := eng.RunCode(t.Context(), engine.Spec{FS: engine.FS{Workspace: dir}}, c, nil)
		if !errors.Is(err, engine.ErrUnsupported) || res != nil || !strings.Contains(err.Error(), "degrade") {
			t.Errorf("%+v, %v", res, err)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Error("it ran all the same")
		}
	})
	t.Run("chuk: accepted, and said so", func(t *testing.T) {
		s := engine.Spec{FS: engine.FS{Workspace: dir}, Degrade: []engine.Protection{engine.ProtectSeccomp}}
		res, err := eng.RunCode(t.Context(), s, c, nil)
		if err != nil || res.Outcome != engine.OutcomeOK || len(res.Start.Dropped) != 1 ||
			res.Start.Dropped[0].Protection != engine.ProtectSeccomp {
			t.Fatalf("%+v, %v", res, err)
		}
		if _, err := os.Stat(mark); err != nil {
			t.Error(err)
		}
	})
}

// What a guest sees of its sandbox.
func TestAttest(t *testing.T) {
	eng := testbox.Open(t)
	t.Run("chuk: hardening", func(t *testing.T) {
		piece{value: `{"CapBnd":"0000000000000000","CapEff":"0000000000000000","NoNewPrivs":"1","Seccomp":"2","nproc":512,"root":"read-only"}`, source: `
import os, resource
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
got = {k: lines[k].strip() for k in ("NoNewPrivs", "Seccomp", "CapEff", "CapBnd")}
got["root"] = "read-only" if os.statvfs("/").f_flag & os.ST_RDONLY else "writable"
got["nproc"] = resource.getrlimit(resource.RLIMIT_NPROC)[1]
{k: got[k] for k in sorted(got)}`}.run(t, eng, nil)
	})
	t.Run("chuk: what a guest sees is where it always is", func(t *testing.T) {
		for range 2 {
			piece{value: `["/workspace",["bin","dev","etc","lib","proc","run","sys","tmp","usr","var","workspace"]]`, source: `
import os
[os.getcwd(), sorted(set(os.listdir("/")) - {"sbin", "lib32", "lib64", "libx32"})]`}.run(t, eng, nil)
		}
	})
	t.Run("chuk: no network", func(t *testing.T) {
		piece{source: "import socket\nsocket.create_connection(('1.1.1.1', 80), 5)", outcome: engine.OutcomeExit, failed: "OSError",
			stderr: "Network is unreachable"}.run(t, eng, nil)
		piece{source: "import socket\n[name for _, name in socket.if_nameindex()]", value: `["lo"]`}.run(t, eng, nil)
	})
	t.Run("axio: the environment is what was asked for", func(t *testing.T) {
		c := piece{source: "import os\ndict(sorted(os.environ.items()))"}.code()
		c.ExtraEnv = []string{"B=2"}
		res, err := eng.RunCode(t.Context(), engine.Spec{Env: []string{"A=1", "LANG=C.UTF-8"}}, c, testbox.Adders())
		if want := `{"A":"1","B":"2","HOME":"/tmp","LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin","TMPDIR":"/tmp"}`; err != nil || string(res.Code.Value) != want {
			t.Errorf("got %s, %v, want %s", res.Code.Value, err, want)
		}
	})
	t.Run("axio: a directory that is read-only", func(t *testing.T) {
		dir := testbox.Workspace(t)
		s := engine.Spec{FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountBind, Source: dir, Target: "/data",
			ReadOnly: true}}}}
		res, err := eng.RunCode(t.Context(), s,
			piece{source: "try: open('/data/f', 'w')\nexcept OSError as e: print(e.strerror)"}.code(), nil)
		if err != nil || string(res.Stdout) != "Read-only file system\n" {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("axio: a workspace at its own path, a home apart, and accounts that are fixed", func(t *testing.T) {
		dir := testbox.Workspace(t)
		res, err := eng.RunCode(t.Context(), engine.Spec{FS: engine.FS{Workspace: dir}}, piece{source: `
import os, pwd
open(os.path.expanduser("~/.secret"), "w")
try: open("/etc/passwd", "a")
except OSError as e: print(e.strerror)
open("made", "w")
[os.getcwd(), os.getuid(), pwd.getpwuid(os.getuid()).pw_name]`}.code(), nil)
		if err != nil || string(res.Code.Value) != fmt.Sprintf(`[%q,1000,"user"]`, dir) ||
			string(res.Stdout) != "Read-only file system\n" {
			t.Errorf("%+v, %v", res, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat("/tmp/.secret"); err == nil {
			t.Error("its home is the host's")
		}
	})
	t.Run("axio: workspaces with odd names", func(t *testing.T) {
		for _, name := range []string{"with:colon", "with  spaces", `with"quotes'\`, "ünï", "-v", "with\nnewline",
			"with,comma=1"} {
			dir := filepath.Join(testenv.Dir(t), name)
			if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
				t.Fatal(err)
			}
			res, err := eng.RunCode(t.Context(), engine.Spec{FS: engine.FS{Workspace: dir}},
				piece{source: "import os\nprint(os.getcwd(), end='')\nopen('made', 'w')"}.code(), nil)
			if err != nil || string(res.Stdout) != dir {
				t.Errorf("%q: %+v, %v", name, res, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("axio: output that is short enough is whole", func(t *testing.T) {
		res := piece{source: "print('x' * 100, end='')", limits: engine.Limits{Output: 100},
			stdout: strings.Repeat("x", 100)}.run(t, eng, nil)
		if res.Streams.TruncatedStdout {
			t.Error("it is said to be truncated")
		}
	})
	t.Run("chuk: a limit of time is of time", func(t *testing.T) {
		begin := time.Now()
		res := piece{source: "import time\ntime.sleep(60)", limits: engine.Limits{Wall: short},
			outcome: engine.OutcomeTimeout}.run(t, eng, nil)
		if d := time.Since(begin); d < short || res.Usage.Wall < short || d > short+5*time.Second {
			t.Errorf("took %v, of which %v by its own account", d, res.Usage.Wall)
		}
	})
}
