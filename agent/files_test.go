//go:build linux

package agent_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// everywhere runs a test on each kind of file tree that the tools support: roots that are read-only but for a private
// or a given directory.
func everywhere(t *testing.T, test func(t *testing.T, tools *agent.Tools)) {
	t.Run("private workspace", func(t *testing.T) {
		_, tools := hands(t, engine.Spec{}, agent.Options{})
		test(t, tools)
	})
	t.Run("workspace of the host", func(t *testing.T) {
		dir := filepath.Join(testbox.Workspace(t), "it's a: workspace")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		_, tools := hands(t, engine.Spec{FS: engine.FS{Workspace: dir, AllowWrite: []string{"."}}}, agent.Options{})
		test(t, tools)
	})
	t.Run("busybox alone", func(t *testing.T) {
		_, tools := hands(t, engine.Spec{FS: engine.FS{Root: busyboxRoot(t, applets...)}}, agent.Options{})
		test(t, tools)
	})
}

// oddNames are names that scripts get wrong.
var oddNames = []string{
	"plain", "two words", " ", "-n", "--help", "it's", `"quoted"`, "a:b", "new\n" +
		"line", "ends in newline\n", "$(touch executed)", "`touch executed`",
	"*", "?", "[a]", `back\slash`, "~", "#", "a;b", "ž", "\x01\x7f", "not UTF-8 \xff", "...", ".hidden", "..twodots",
	"%s%n", strings.Repeat("n", 255),
}

func TestFileNames(t *testing.T) {
	testenv.Long(t)
	everywhere(t, func(t *testing.T, tools *agent.Tools) {
		for i, name := range oddNames {
			content := fmt.Sprint("content ", i)
			below := "dir " + name[:min(len(name), 200)] + "/sub/" + name
			for _, p := range []string{name, below} {
				same(t, say(t, tools.WriteFile, agent.WriteInput{Path: p, Content: content}),
					fmt.Sprintf("Wrote %d bytes to %s", len(content), p))
			}
			same(t, say(t, tools.ReadFile, agent.ReadInput{Path: name}), content)
			same(t, say(t, tools.PatchFile, agent.PatchInput{Path: below, FromLine: 1, ToLine: 1, Content: "x"}),
				"@@ -1 +1 @@\n-"+content+"\n\\ No newline at end of file\n+x\n\\ No newline at end of file")
		}
		list := say(t, tools.ListFiles, agent.ListInput{})
		same(t, strings.Count(list, "\n")+1, 2*len(oddNames))
		for _, line := range []string{` "new\nline"`, ` "ends in newline\n"`, " two words", ` "not UTF-8 \xff"`, " -n",
			` back\slash`, " $(touch executed)", ` "quoted"`, " ž"} {
			if !strings.Contains(list+"\n", line+"\n") {
				t.Errorf("no %q in\n%s", line, list)
			}
		}
		if strings.Contains(list+"\n", " executed\n") {
			t.Error("a name was executed")
		}
	})
}

func TestFiles(t *testing.T) {
	testenv.Long(t)
	everywhere(t, func(t *testing.T, tools *agent.Tools) {
		sh := func(command string) string { return say(t, tools.Shell, agent.ShellInput{Command: command}) }
		write := func(path, content string) string {
			return say(t, tools.WriteFile, agent.WriteInput{Path: path, Content: content})
		}
		read := func(in agent.ReadInput) string { return say(t, tools.ReadFile, in) }

		t.Run("axio: an empty directory", func(t *testing.T) {
			same(t, say(t, tools.ListFiles, agent.ListInput{}),
				"(empty directory)")
		})
		t.Run("axio: the same bytes", func(t *testing.T) {
			all := make([]byte, 3*256)
			for i := range all {
				all[i] = byte(i)
			}
			same(t, write("bytes", string(all)), "Wrote 768 bytes to bytes")
			got, err := tools.ReadFileBytes(t.Context(), "bytes")
			if err != nil {
				t.Fatal(err)
			}
			same(t, string(got), string(all))
			for _, text := range []string{"", "\n", "\n\n", "no newline", "\ttab \r\n", "ž\u2028"} {
				write("text", text)
				same(t, read(agent.ReadInput{Path: "text"}), text)
			}
		})
		t.Run("axio: mode", func(t *testing.T) {
			write("new", "x")
			same(t, sh("stat -c %a new"), "644")
			say(t, tools.WriteFile, agent.WriteInput{Path: "new", Content: "y", Mode: 0o640})
			same(t, sh("stat -c %a new"), "640")
			say(t, tools.PatchFile, agent.PatchInput{Path: "new", FromLine: 1, ToLine: 1, Content: "z"})
			same(t, sh("stat -c %a new; cat new"), "640\nz")
			fails(t, tools.WriteFile, agent.WriteInput{Path: "new", Content: "x", Mode: 0o4755}, "permission bits only")
		})
		t.Run("axio: mode 755", func(t *testing.T) {
			in := agent.WriteInput{Path: "run", Content: "#!/bin/sh\necho ran", Mode: 0o755}
			say(t, tools.WriteFile, in)
			same(t, sh("stat -c %a run; ./run"), "755\nran")
			write("run", "#!/bin/sh\necho again")
			same(t, sh("stat -c %a run; ./run"), "755\nagain")
			sh("echo x >few; chmod 7 few; ln -s few to-few")
			fails(t, tools.WriteFile, agent.WriteInput{Path: "few", Content: "y"}, "permission")
			sh("chmod 200 few")
			say(t, tools.WriteFile, agent.WriteInput{Path: "to-few", Content: "y"})
			same(t, sh("stat -c %a few; chmod 600 few; cat few"), "200\ny")
		})
		t.Run("axio: the file belongs to the user",
			func(t *testing.T) { same(t, sh("stat -c %u:%g new"), sh("echo $(id -u):$(id -g)")) })

		write("five", "one\ntwo\nthree\nfour\nfive\n")
		for _, c := range []struct {
			name string
			in   agent.ReadInput
			want string
		}{
			{"axio: lines 2 to 4", agent.ReadInput{StartLine: 2, EndLine: 4}, "two\nthree\nfour\n"},
			{"axio: from a line", agent.ReadInput{StartLine: 5}, "five\n"},
			{"axio: to a line beyond", agent.ReadInput{StartLine: 4, EndLine: 99}, "four\nfive\n"},
			{"axio: numbers", agent.ReadInput{EndLine: 2, LineNumbers: true}, "L1│one\nL2│two\n"},
			{"axio: numbers of all", agent.ReadInput{LineNumbers: true},
				"L1│one\nL2│two\nL3│three\nL4│four\nL5│five\n"},
			{"axio: max_chars", agent.ReadInput{MaxChars: 10}, "one\ntwo\nth...[truncated]"},
			{"axio: max_chars that fits", agent.ReadInput{MaxChars: 24}, "one\ntwo\nthree\nfour\nfive\n"},
			{"axio: max_chars of lines", agent.ReadInput{StartLine: 2, MaxChars: 5}, "two\nt...[truncated]"},
			{"axio: max_chars with numbers", agent.ReadInput{LineNumbers: true, MaxChars: 9}, "L1│one\n...[truncated]"},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.in.Path = "five"
				same(t, read(c.in), c.want)
			})
		}
		t.Run("axio: characters, not bytes", func(t *testing.T) {
			write("wide", strings.Repeat("ž", 100))
			same(t, read(agent.ReadInput{Path: "wide", MaxChars: 3}), "žžž...[truncated]")
		})
		t.Run("axio: the default of max_chars, in a file of any size", func(t *testing.T) {
			sh("seq 1 3000000 >large")
			got := read(agent.ReadInput{Path: "large"})
			if len(got) != 32768+len("...[truncated]") || !strings.HasPrefix(got, "1\n2\n") ||
				!strings.HasSuffix(got, "...[truncated]") {
				t.Errorf("%d bytes, %q…", len(got), got[:10])
			}
			fails(t, tools.ReadFile, agent.ReadInput{Path: "large", StartLine: 1}, "larger than 8MiB")
			fails(t, tools.PatchFile, agent.PatchInput{Path: "large", FromLine: 1}, "larger than 8MiB")
			_, err := tools.ReadFileBytes(t.Context(), "large")
			same(t, err != nil && strings.Contains(err.Error(), "larger than 8MiB"), true)
			fails(t, tools.WriteFile, agent.WriteInput{Path: "larger", Content: strings.Repeat("x", 8<<20+1)}, "at most 8MiB")
			same(t, write("large", strings.Repeat("x\n", 4<<20)), "Wrote 8388608 bytes to large")
			sh("rm large")
		})
		t.Run("axio: lines and numbers that are none", func(t *testing.T) {
			fails(t, tools.ReadFile, agent.ReadInput{Path: "five", MaxChars: -1}, "max_chars -1")
			fails(t, tools.ReadFile, agent.ReadInput{Path: "five", StartLine: -1}, "counted from 1")
			fails(t, tools.ReadFile, agent.ReadInput{Path: "five", StartLine: 3, EndLine: 2}, "before start_line")
			fails(t, tools.ReadFile, agent.ReadInput{Path: "five", StartLine: 6}, "the file has 5 lines")
		})
		t.Run("axio: what is not text", func(t *testing.T) {
			sh(`printf 'a\377\000' >binary`)
			no := false
			same(t, read(agent.ReadInput{Path: "binary"}), "[binary as hex] 61ff00")
			same(t, read(agent.ReadInput{Path: "binary", MaxChars: 4}), "[binary as hex] 61ff...[truncated]")
			fails(t, tools.ReadFile, agent.ReadInput{Path: "binary", BinaryAsHex: &no}, "is not text")
			same(t, read(agent.ReadInput{Path: "five", EndLine: 1, BinaryAsHex: &no}), "one\n")
		})
		t.Run("axio: a patch of what is not text", func(t *testing.T) {
			fails(t, tools.PatchFile, agent.PatchInput{Path: "binary", FromLine: 1, ToLine: 1, Content: "x"}, "not UTF-8")
			same(t, read(agent.ReadInput{Path: "binary"}), "[binary as hex] 61ff00")
		})
		t.Run("axio: what is not there", func(t *testing.T) {
			for _, err := range []error{
				fails(t, tools.ReadFile, agent.ReadInput{Path: "none/here"}, `"none/here"`),
				fails(t, tools.ListFiles, agent.ListInput{Path: "none"}, `"none"`),
				fails(t, tools.PatchFile, agent.PatchInput{Path: "none", FromLine: 1}, `"none"`),
			} {
				same(t, errors.Is(err, fs.ErrNotExist), true)
			}
			fails(t, tools.ReadFile, agent.ReadInput{}, "no path")
			fails(t, tools.ReadFile, agent.ReadInput{Path: "a\x00b"}, "NUL")
		})
		t.Run("what is not a file", func(t *testing.T) {
			sh("mkdir d; ln -s d to-dir")
			for _, p := range []string{"d", "d/", "to-dir", ".", "/", "new-dir/"} {
				fails(t, tools.WriteFile, agent.WriteInput{Path: p, Content: "x"}, "is a directory")
			}
			fails(t, tools.ReadFile, agent.ReadInput{Path: "d"}, "is a directory")
			fails(t, tools.ListFiles, agent.ListInput{Path: "five"}, "is not a directory")
			fails(t, tools.WriteFile, agent.WriteInput{Path: "five/x", Content: "x"}, "")
			for _, p := range []string{"/dev/zero", "/dev/null"} {
				fails(t, tools.ReadFile, agent.ReadInput{Path: p}, "not a regular file")
				fails(t, tools.WriteFile, agent.WriteInput{Path: p, Content: "x"}, "not a regular file")
				fails(t, tools.PatchFile, agent.PatchInput{Path: p, FromLine: 1}, "not a regular file")
			}
		})
		t.Run("a file that may not be read or written", func(t *testing.T) {
			sh("umask 777; echo x >secret; mkdir closed")
			for _, err := range []error{
				fails(t, tools.ReadFile, agent.ReadInput{Path: "secret"}, "permission"),
				fails(t, tools.WriteFile, agent.WriteInput{Path: "secret", Content: "y"}, "permission"),
				fails(t, tools.ListFiles, agent.ListInput{Path: "closed"}, "permission"),
			} {
				same(t, errors.Is(err, fs.ErrPermission), true)
			}
			fails(t, tools.WriteFile, agent.WriteInput{Path: "/usr/new", Content: "y"}, "/usr/new")
			sh("rmdir closed")
		})
		t.Run("axio: write shows a diff only of text that is replaced", func(t *testing.T) {
			same(t, write("w", "a\nb\n"), "Wrote 4 bytes to w")
			same(t, write("w", "a\nc\n"), "Wrote 4 bytes to w\n@@ -1,2 +1,2 @@\n a\n-b\n+c")
			same(t, write("w", "a\nc\n"), "Wrote 4 bytes to w")
			same(t, write("w", "\xff"), "Wrote 1 bytes to w")
			same(t, write("w", "text"), "Wrote 4 bytes to w")
			same(t, write("w", ""), "Wrote 0 bytes to w\n@@ -1 +0,0 @@\n-text\n\\ No newline at end of file")
			same(t, write("w", "new"), "Wrote 3 bytes to w")
		})
		t.Run("nothing is left beside the files", func(t *testing.T) {
			if list := say(t, tools.ListFiles, agent.ListInput{}); strings.Contains(list, ".write-") {
				t.Error(list)
			}
		})
		t.Run("patches that lose nothing to each other", func(t *testing.T) {
			write("count", "0\n")
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() { say(t, tools.PatchFile, agent.PatchInput{Path: "count", FromLine: 1, Content: "x"}) })
			}
			group.Wait()
			same(t, read(agent.ReadInput{Path: "count"}), strings.Repeat("x\n", 8)+"0\n")
		})
	})
}

func TestList(t *testing.T) {
	testenv.NoRace(t)
	everywhere(t, func(t *testing.T, tools *agent.Tools) {
		say(t, tools.Shell, agent.ShellInput{Command: `mkdir -p sub/below .hid; touch sub/below/x; (umask 137; printf 12345 >a); printf 123 >z; ln -s nowhere link; touch -t 202001020304 a`})
		got := say(t, tools.ListFiles, agent.ListInput{})
		t.Run("axio: directories first, one level, permissions, size, time, name", func(t *testing.T) {
			want := regexp.MustCompile(`^drwxr-xr-x +\d+ \d{4}-\d\d-\d\d \d\d:\d\d \.hid/
drwxr-xr-x +\d+ \S+ \S+ sub/
-rw-r----- +5 2020-01-02 03:04 a
lrwxrwxrwx +\d+ \S+ \S+ link
-rw-r--r-- +3 \S+ \S+ z$`)
			if !want.MatchString(got) {
				t.Errorf("got\n%s", got)
			}
		})
		t.Run("a directory by its path", func(t *testing.T) {
			if got := say(t, tools.ListFiles, agent.ListInput{Path: "sub"}); !strings.HasSuffix(got, " below/") ||
				strings.Contains(got, "\n") {
				t.Errorf("got\n%s", got)
			}
		})
		t.Run("a large directory is bounded", func(t *testing.T) {
			say(t, tools.Shell, agent.ShellInput{Command: `mkdir many; cd many; for i in $(seq 1 1200); do : >"a rather long name of a file to list, number $i"; done`, Timeout: 60})
			got := say(t, tools.ListFiles, agent.ListInput{Path: "many"})
			same(t, strings.Count(got, "\n"), 1000)
			same(t, strings.HasSuffix(got, "\n...[truncated]"), true)
		})
	})
}
