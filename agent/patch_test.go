//go:build linux

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestPatch(t *testing.T) {
	testenv.NoRace(t)
	_, tools := hands(t, engine.Spec{}, agent.Options{})
	const three = "one\n\ttwo \nthree\n"
	for _, c := range []struct {
		name   string
		file   string
		in     agent.PatchInput
		want   string // what the file is then
		answer string // "" is not looked at
	}{
		{"axio: replace line 2", three, agent.PatchInput{FromLine: 2, ToLine: 2, Content: "TWO\n"}, "one\nTWO\nthree\n",
			"@@ -1,3 +1,3 @@\n one\n-\ttwo \n+TWO\n three"},
		{"axio: content without its newline", three, agent.PatchInput{FromLine: 2, ToLine: 2, Content: "TWO"},
			"one\nTWO\nthree\n", ""},
		{"axio: more lines for fewer", three, agent.PatchInput{FromLine: 1, ToLine: 3, Content: "1\n2\n3\n4"},
			"1\n2\n3\n4\n", ""},
		{"axio: delete", three, agent.PatchInput{FromLine: 1, ToLine: 2}, "three\n", ""},
		{"axio: delete all", three, agent.PatchInput{FromLine: 1, ToLine: 3}, "", "@@ -1,3 +0,0 @@\n-one\n-\ttwo \n-three"},
		{"axio: insert before", three, agent.PatchInput{FromLine: 2, ToLine: 1, Content: "new"}, "one\nnew\n\ttwo \nthree\n",
			"@@ -1,3 +1,4 @@\n one\n+new\n \ttwo \n three"},
		{"axio: append", three, agent.PatchInput{FromLine: 4, ToLine: 3, Content: "four"}, three + "four\n", ""},
		{"axio: into an empty file", "", agent.PatchInput{FromLine: 1, Content: "x\n"}, "x\n", "@@ -0,0 +1 @@\n+x"},
		{"axio: into an empty file, no newline", "", agent.PatchInput{FromLine: 1, Content: "x"}, "x", ""},
		{"axio: no path, little context", strings.Repeat("same\n", 20),
			agent.PatchInput{FromLine: 10, ToLine: 10, Content: "x"}, strings.Repeat("same\n", 9) + "x\n" +
				strings.Repeat("same\n", 10),
			"@@ -7,7 +7,7 @@\n same\n same\n same\n-same\n+x\n same\n same\n same"},
		{"axio: no change", three, agent.PatchInput{FromLine: 3, ToLine: 3, Content: "three"}, three, "(no change)"},
		{"axio: spaces and tabs", three, agent.PatchInput{FromLine: 2, ToLine: 2, Content: "\t  x \t\n  y\r\n"},
			"one\n\t  x \t\n  y\r\nthree\n", ""},
		{"axio: indent of the first line only", three,
			agent.PatchInput{FromLine: 2, ToLine: 2, Content: "x\ny", FirstLineIndent: 4}, "one\n    x\ny\nthree\n", ""},
		{"axio: no indent keeps content", three, agent.PatchInput{FromLine: 2, ToLine: 2, Content: "  x"},
			"one\n  x\nthree\n", ""},
		{"axio: no newline at the end stays so", "a\nb", agent.PatchInput{FromLine: 2, ToLine: 2, Content: "B\n"}, "a\nB",
			"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file"},
		{"axio: append where there is none", "a", agent.PatchInput{FromLine: 2, ToLine: 1, Content: "b"}, "a\nb",
			"@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file"},
		{"axio: delete the last line where there is none", "a\nb", agent.PatchInput{FromLine: 2, ToLine: 2}, "a", ""},
		{"axio: a newline stays", "a\nb\n", agent.PatchInput{FromLine: 2, ToLine: 2, Content: "B"}, "a\nB\n",
			"@@ -1,2 +1,2 @@\n a\n-b\n+B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Path = "f"
			say(t, tools.WriteFile, agent.WriteInput{Path: "f", Content: c.file})
			answer := say(t, tools.PatchFile, c.in)
			if c.answer != "" {
				same(t, answer, c.answer)
			}
			same(t, say(t, tools.ReadFile, agent.ReadInput{Path: "f"}), c.want)
		})
	}
	for _, c := range []struct {
		name string
		in   agent.PatchInput
		want string
	}{
		{"axio: indent and white space", agent.PatchInput{FromLine: 1, ToLine: 1, Content: " x", FirstLineIndent: 1},
			"white space"},
		{"axio: indent and tab", agent.PatchInput{FromLine: 1, ToLine: 1, Content: "\tx", FirstLineIndent: 1}, "white space"},
		{"axio: indent without content", agent.PatchInput{FromLine: 1, ToLine: 1, FirstLineIndent: 1}, "without content"},
		{"axio: indent out of bounds", agent.PatchInput{FromLine: 1, ToLine: 1, Content: "x", FirstLineIndent: 257},
			"0 to 256"},
		{"axio: negative indent", agent.PatchInput{FromLine: 1, ToLine: 1, Content: "x", FirstLineIndent: -1}, "0 to 256"},
		{"no first line", agent.PatchInput{FromLine: 0, ToLine: 1, Content: "x"}, "from_line 0"},
		{"a first line beyond", agent.PatchInput{FromLine: 5, ToLine: 4, Content: "x"}, "the file has 3 lines"},
		{"a last line beyond", agent.PatchInput{FromLine: 2, ToLine: 4, Content: "x"}, "the file has 3 lines"},
		{"a last line before", agent.PatchInput{FromLine: 3, ToLine: 1, Content: "x"}, "before from_line 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Path = "g"
			say(t, tools.WriteFile, agent.WriteInput{Path: "g", Content: three})
			err := fails(t, tools.PatchFile, c.in, c.want)
			same(t, errors.Is(err, engine.ErrInvalid), true)
			same(t, say(t, tools.ReadFile, agent.ReadInput{Path: "g"}), three)
		})
	}
}

// shimmed returns the tools of a sandbox with a file x, in which a script stands in for some programs.
func shimmed(t *testing.T, o agent.Options, script string, programs ...string) *agent.Tools {
	t.Helper()
	dir := testenv.Dir(t)
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, tools := hands(t, engine.Spec{
		Env: []string{"PATH=/shim:/usr/bin:/bin"},
		FS:  engine.FS{Mounts: []engine.Mount{{Type: engine.MountBind, Source: dir, Target: "/shim", ReadOnly: true}}},
	}, o)
	say(t, tools.Shell, agent.ShellInput{Command: "echo x >x"})
	return tools
}

// A guest may do what it likes to the files while a tool works on them. The tools use programs of its file tree, which
// may lie or hang.
func TestHostileFiles(t *testing.T) {
	testenv.Long(t)
	quick := agent.Options{FileTimeout: 2 * time.Second}
	t.Run("a FIFO is refused", func(t *testing.T) {
		_, tools := hands(t, engine.Spec{}, agent.Options{})
		say(t, tools.Shell, agent.ShellInput{Command: "mkfifo fifo; ln -s fifo to-fifo"})
		for _, p := range []string{"fifo", "to-fifo"} {
			fails(t, tools.ReadFile, agent.ReadInput{Path: p}, "not a regular file")
			fails(t, tools.WriteFile, agent.WriteInput{Path: p}, "not a regular file")
			fails(t, tools.PatchFile, agent.PatchInput{Path: p, FromLine: 1}, "not a regular file")
		}
	})
	t.Run("symbolic links lead where the sandbox can go", func(t *testing.T) {
		outside := testbox.Workspace(t)
		if err := os.WriteFile(outside+"/secret", []byte("of the host"), 0o666); err != nil {
			t.Fatal(err)
		}
		dir := testbox.Workspace(t)
		_, tools := hands(t, engine.Spec{FS: engine.FS{Workspace: dir}}, agent.Options{})
		say(t, tools.Shell, agent.ShellInput{Command: fmt.Sprintf("ln -s %s/secret s; ln -s %[1]s d; "+
			"ln -s /proc/1/root/%[1]s/secret p; ln -s loop loop; mkdir sub; echo x >sub/f; ln -s sub/f f; "+
			"ln -s sub/new n", outside)})
		paths := []string{"s", "d/secret", "p", "../" + filepath.Base(outside) + "/secret", outside + "/secret",
			"sub/../../" + filepath.Base(outside) + "/secret"}
		for _, p := range paths {
			fails(t, tools.ReadFile, agent.ReadInput{Path: p}, "")
			fails(t, tools.PatchFile, agent.PatchInput{Path: p, FromLine: 1, ToLine: 1, Content: "changed"}, "")
			fails(t, tools.ListFiles, agent.ListInput{Path: filepath.Dir(p) + "/" + filepath.Base(p) + "/.."}, "")
		}
		for _, p := range paths { // some of them are of the private /tmp, and succeed
			_, _ = tools.WriteFile(t.Context(), agent.WriteInput{Path: p, Content: "changed"})
		}
		fails(t, tools.WriteFile, agent.WriteInput{Path: "loop", Content: "x"}, "symbolic links")
		if b, err := os.ReadFile(outside + "/secret"); err != nil || string(b) != "of the host" {
			t.Errorf("%q, %v", b, err)
		}
		// Inside, writing to a link keeps the link and writes its target.
		same(t, say(t, tools.WriteFile, agent.WriteInput{Path: "f", Content: "y\n"}),
			"Wrote 2 bytes to f\n@@ -1 +1 @@\n-x\n+y")
		say(t, tools.WriteFile, agent.WriteInput{Path: "n", Content: "new"})
		same(t, say(t, tools.Shell, agent.ShellInput{Command: "readlink f n; cat sub/f sub/new"}), "sub/f\nsub/new\ny\nnew")
	})
	t.Run("axio: what is swapped for a FIFO ends at the timeout", func(t *testing.T) {
		// A file that the shell has tested is a FIFO when it is opened.
		tools := shimmed(t, quick, "mkfifo /tmp/fifo 2>/dev/null; exec cat /tmp/fifo", "head", "stat")
		fails(t, tools.ReadFile, agent.ReadInput{Path: "x"}, "no end of it after 2 s")
		fails(t, tools.ListFiles, agent.ListInput{}, "no end of it after 2 s")
		fails(t, tools.WriteFile, agent.WriteInput{Path: "x", Content: "y"}, "no end of it after 2 s")
		same(t, say(t, tools.Shell, agent.ShellInput{Command: "cat x"}), "x")
	})
	for name, c := range map[string]struct{ stat, want string }{
		"axio: a listing that makes no sense": {"echo nonsense", "makes no sense"},
		"axio: a name with a slash":           {"echo '-rw-r--r-- 1 1 ./../../etc/passwd/'", "makes no sense"},
		"axio: a listing without end":         {"exec cat /dev/zero", "no end of it"},
		"axio: what it complains about": {"echo '-rw-r--r-- 1 1 ./x/'; echo 'stat: out of order' >&2; exit 1",
			"stat: out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, shimmed(t, quick, c.stat, "stat").ListFiles, agent.ListInput{}, c.want)
		})
	}
	t.Run("a head that gives more than it is asked for", func(t *testing.T) {
		tools := shimmed(t, agent.Options{}, "exec seq 1 3000000", "head")
		fails(t, tools.ReadFile, agent.ReadInput{Path: "x", StartLine: 1}, "more than")
	})
	t.Run("a write that is canceled waits for no other", func(t *testing.T) {
		_, tools := hands(t, engine.Spec{}, agent.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := tools.WriteFile(ctx, agent.WriteInput{Path: "x"})
		same(t, errors.Is(err, context.Canceled), true)
	})
}
