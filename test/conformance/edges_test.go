//go:build linux

package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// Input and output beside calls, which other systems get wrong.
func TestStreams(t *testing.T) { testbox.EachLevel(t, testStreams) }

func testStreams(t *testing.T, l testbox.Level) {
	eng := l.Open(t)
	for _, p := range []piece{
		{name: "rubbish on standard output", value: "4950", stdout: strings.Repeat("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"value\":99}}\n\x00{\n", 100) + "child\n", source: `
import os, subprocess
total = 0
for i in range(100):
    os.write(1, b'{"jsonrpc":"2.0","id":1,"result":{"value":99}}\n\0{\n')
    total = add(total, i)
subprocess.run(["sh", "-c", "echo child"])
total`},
		{name: "no input is its end", source: "add(1, 1)\ntry: input()\nexcept EOFError: print('end')\nadd(1, 2)",
			stdout: "end\n", value: "3"},
		{name: "much on standard error", source: "import sys\nsys.stderr.write('e' * 200_000)\nprint('done')",
			stdout: "done\n", stderr: strings.Repeat("e", 200_000)},
		{name: "what is no text", source: "import sys\nsys.stdout.buffer.write(bytes(range(128, 256)))\nNone",
			stdout: func() string {
				var b []byte
				for i := range 128 {
					b = append(b, byte(128+i))
				}
				return string(b)
			}()},
		{name: "chuk: a call goes on after one that was too large", limits: engine.Limits{Frame: 32 * engine.KiB},
			source: "try: big(40_000)\nexcept ToolError as e: print(e.code)\n" +
				"len(big(30_000))", stdout: "-32007\n", value: "30000"},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.runAt(t, l, eng, toolbox())
		})
	}
	t.Run("input is the caller's", func(t *testing.T) {
		c := piece{source: "import sys\n[input(), add(1, 2), sys.stdin.read()]"}.code()
		c.Stdin = strings.NewReader("one\ntwo\nthree")
		res, err := eng.RunCode(t.Context(), l.Accept(engine.Spec{}), c, testbox.Adders())
		if err != nil || string(res.Code.Value) != `["one",3,"two\nthree"]` {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("long code", func(t *testing.T) {
		long := piece{source: "x = '" + strings.Repeat("x", 10<<20) + "'\nlen(x)", value: "10485760"}
		if res, err := eng.RunCode(t.Context(), l.Accept(engine.Spec{}), long.code(), nil); !errors.Is(err, engine.ErrInvalid) ||
			!strings.Contains(err.Error(), "the limit is 8388608") {
			t.Errorf("%+v, %v", res, err)
		}
		long.limits.Frame = 16 * engine.MiB
		long.runAt(t, l, eng, nil)
		piece{lang: "sh", source: "echo ok # " + strings.Repeat("x", 1<<20), stdout: "ok\n"}.runAt(t, l, eng, nil)
	})
}

// Endless output takes no memory.
func TestGigabyte(t *testing.T) {
	testenv.Long(t)
	t.Run("a gigabyte", func(t *testing.T) {
		eng := testbox.Open(t)
		before, _ := testbox.Resident(t)
		res := piece{source: "import os\nb = b'x' * (1 << 20)\nfor _ in range(1024): os.write(1, b)",
			limits: engine.Limits{Output: 1000}, stdout: strings.Repeat("x", 1000)}.run(t, eng, nil)
		if !res.Streams.TruncatedStdout {
			t.Error("not said to be truncated")
		}
		if after, _ := testbox.Resident(t); after > before+16*engine.MiB {
			t.Errorf("the host grew by %s", after-before)
		}
	})
}

// An end takes all processes with it, and the Result has everything from before.
func TestEnds(t *testing.T) {
	eng := testbox.Open(t)
	t.Run("what there was before a timeout", func(t *testing.T) {
		t.Parallel()
		c := piece{source: "import sys\nprint('out', add(1, 2))\nprint('err', file=sys.stderr, flush=True)\n" +
			"sys.stdout.flush()\nwhile True: pass"}.code()
		res, err := eng.RunCode(t.Context(), engine.Spec{Limits: engine.Limits{Wall: enough}}, c, testbox.Adders())
		if err != nil || res.Outcome != engine.OutcomeTimeout || string(res.Stdout) != "out 3\n" || string(res.Stderr) != "err\n" ||
			len(res.Code.ToolCalls) != 1 {
			t.Errorf("%+v, %v", res, err)
		}
	})
	for name, heeds := range map[string]bool{"that heeds its context": true, "that does not": false} {
		t.Run("chuk: a timeout while a tool is running "+name, func(t *testing.T) {
			t.Parallel()
			s, ended, release := new(broker.Set), make(chan error, 1), make(chan struct{})
			broker.Add(s, "sleep", "", func(ctx context.Context, _ struct{}) (int, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				if !heeds {
					<-release
				}
				return 0, ctx.Err()
			})
			begin := time.Now()
			res, err := eng.RunCode(t.Context(), engine.Spec{Limits: engine.Limits{Wall: enough}},
				piece{source: "print('on', flush=True)\nsleep()"}.code(), s)
			if d := time.Since(begin); d < enough || d > enough+3*time.Second {
				t.Errorf("took %v", d)
			}
			close(release)
			if err != nil || res.Outcome != engine.OutcomeTimeout || string(res.Stdout) != "on\n" || len(res.Code.ToolCalls) != 1 ||
				res.Code.ToolCalls[0].Code != broker.CodeCanceled {
				t.Errorf("%+v, %v", res, err)
			}
			toolCanceled(t, ended)
		})
	}
	for i, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("what runs beside it goes, keep %v", keep), func(t *testing.T) {
			t.Parallel()
			mark := testbox.Marker(1900 + i)
			s := new(broker.Set)
			broker.Add(s, "wait_for_all", "", func(ctx context.Context, _ struct{}) (int, error) {
				for len(testbox.Alive(t, mark)) < 3 && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				return 0, ctx.Err()
			})
			box := testbox.Start(t, eng, engine.Spec{Keep: keep, Limits: engine.Limits{Wall: enough}})
			res, err := box.RunCode(t.Context(), piece{vars: map[string]any{"mark": mark}, source: `
import subprocess, time
subprocess.Popen(["sleep", mark])
subprocess.Popen(["setsid", "sleep", mark])
subprocess.Popen(["sh", "-c", "(setsid sh -c 'sleep $0 & exit 0' $0 &)", mark])
wait_for_all()
print("all are there", flush=True)
time.sleep(60)`}.code(), s)
			if err != nil || res.Outcome != engine.OutcomeTimeout || string(res.Stdout) != "all are there\n" {
				t.Fatalf("%+v, %v", res, err)
			}
			testbox.Gone(t, mark)
			if keep {
				if got := testbox.Output(t, box, "echo alive"); got != "alive" {
					t.Errorf("the sandbox: %q", got)
				}
			}
		})
	}
	t.Run("canceled in the middle of a call", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		s, ended := new(broker.Set), make(chan error, 1)
		broker.Add(s, "hang", "", func(ctx context.Context, _ struct{}) (int, error) {
			cancel()
			<-ctx.Done()
			ended <- ctx.Err()
			return 0, ctx.Err()
		})
		res, err := eng.RunCode(ctx, engine.Spec{}, piece{source: "print('on', flush=True)\nhang()"}.code(), s)
		if err != nil || res.Outcome != engine.OutcomeCanceled || string(res.Stdout) != "on\n" || len(res.Code.ToolCalls) != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		toolCanceled(t, ended)
	})
	t.Run("a value, and no end", func(t *testing.T) {
		t.Parallel()
		p := piece{source: "import atexit, time\natexit.register(time.sleep, 60)\n42", limits: engine.Limits{Wall: enough},
			outcome: engine.OutcomeTimeout, value: "42"}
		p.run(t, eng, nil)
	})
	t.Run("the host is killed", func(t *testing.T) {
		t.Parallel()
		mark := testbox.Marker(1950)
		host, out := testbox.StartHelper(t, "coder", mark)
		if _, err := out.Read(make([]byte, 1)); err != nil { // from the tool
			t.Fatal(err)
		}
		testbox.Runs(t, mark)
		if err := host.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = host.Wait() // killed
		testbox.Gone(t, mark)
	})
}

// toolCanceled waits until a tool says that its context is done.
func toolCanceled(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the tool's context ended with %v", err)
		}
	case <-time.After(testbox.Patience):
		t.Error("the tool goes on")
	}
}

// codeHost runs code that never ends, and prints a line when the code calls a tool.
func codeHost() {
	s := new(broker.Set)
	broker.Add(s, "hold", "", func(ctx context.Context, _ struct{}) (int, error) {
		fmt.Println("called")
		<-ctx.Done()
		return 0, ctx.Err()
	})
	p := piece{vars: map[string]any{"mark": os.Args[1]}, source: `
import subprocess
for start in [], ["setsid"]: subprocess.Popen([*start, "sleep", mark])
hold()`}
	res, err := engine.RunCode(context.Background(), engine.Spec{}, p.code(), s)
	panic(fmt.Sprint(res, err))
}

// Secrets of the host are out of reach.
func TestSecrets(t *testing.T) {
	t.Setenv("TEGMEN_TEST_SECRET", "hunter2")
	t.Run("the host's environment", func(t *testing.T) {
		for name, eng := range map[string]*engine.Engine{"namespaces": testbox.Open(t),
			"landlock": testbox.Landlock.Open(t)} {
			s := engine.Spec{Degrade: []engine.Protection{engine.ProtectNamespaces}}
			res, err := eng.RunCode(t.Context(), s, piece{source: `
import glob, os
seen = [os.environ.get("TEGMEN_TEST_SECRET")]
for f in glob.glob("/proc/*/environ"):
    try: seen.append("hunter2" in open(f, errors="replace").read())
    except OSError: pass
[any(seen), len(seen) > 1]`}.code(), nil)
			if err != nil || string(res.Code.Value) != "[false,true]" {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
	})
	t.Run("sockets of the host", func(t *testing.T) {
		dir := testenv.Dir(t)
		names := []string{filepath.Join(dir, "socket"), fmt.Sprintf("@tegmen-test-%d", os.Getpid())}
		for _, name := range names {
			l, err := net.Listen("unix", name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(name, "@") {
				if err := os.Chmod(name, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			defer l.Close()
			// Any process of the host gets in.
			c, err := net.Dial("unix", name)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		piece{vars: map[string]any{"names": names}, value: "[3,true]", stdout: "refused\nrefused\n", source: `
import socket
reached = True
for name in names:
    try: socket.socket(socket.AF_UNIX).connect(name.replace("@", "\0"))
    except OSError: print("refused")
    else: reached = False
[add(1, 2), reached]`}.run(t, testbox.Open(t), testbox.Adders())
	})
	t.Run("OpenChia: files beside the workspace", func(t *testing.T) {
		dir := testenv.Dir(t)
		ws := filepath.Join(dir, "ws")
		for _, err := range []error{os.Mkdir(ws, 0o777), os.Chmod(ws, 0o777),
			os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o666)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		res, err := testbox.Open(t).RunCode(t.Context(), engine.Spec{FS: engine.FS{Workspace: ws}}, piece{vars: map[string]any{"dir": dir}, source: `
import os
os.symlink(dir + "/secret", "link")
got = []
for mode in "r", "a": # a file that is written to is one of its own /tmp
    for name in "../secret", dir + "/secret", "link", "../../../etc/shadow":
        try: open(name, mode).write("y")
        except OSError: got.append("no")
        else: got.append("yes")
" ".join(got[:4])`}.code(), nil)
		if err != nil || string(res.Code.Value) != `"no no no no"` {
			t.Errorf("%+v, %v", res, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || !bytes.Equal(b, []byte("x")) {
			t.Errorf("on the host: %q, %v", b, err)
		}
	})
}
