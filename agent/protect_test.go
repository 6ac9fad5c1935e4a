//go:build linux

package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// The error about a file names the path that the model wrote, and the reason: not lines of our script or temporary
// files.
func TestRefusals(t *testing.T) {
	testenv.NoRace(t)
	everywhere(t, func(t *testing.T, tools *agent.Tools) {
		say(t, tools.Shell, agent.ShellInput{Command: "echo x >file; (umask 222; mkdir closed); (umask 177; " +
			"mkdir unsearched)"})
		write := func(path string) error {
			_, err := tools.WriteFile(t.Context(), agent.WriteInput{Path: path, Content: "x"})
			return err
		}
		long := strings.Repeat("n", 256)
		_, unsearched := tools.ReadFile(t.Context(), agent.ReadInput{Path: "unsearched/file"})
		_, unlisted := tools.ListFiles(t.Context(), agent.ListInput{Path: "unsearched/dir"})
		for _, c := range []struct {
			err  error
			want string
			is   error
		}{
			{write("closed/new"), `write file "closed/new": permission denied`, fs.ErrPermission},
			{write("closed/new/new"), `write file "closed/new/new": permission denied`, fs.ErrPermission},
			{write("file/new"), `write file "file/new": a parent is not a directory`, syscall.ENOTDIR},
			{write("file/new/new"), `write file "file/new/new": a parent is not a directory`, syscall.ENOTDIR},
			{write("closed"), `write file "closed": is a directory`, syscall.EISDIR},
			{write(long), `write file "` + long + `": a name in it is too long`, syscall.ENAMETOOLONG},
			{write(long + "/new"), `write file "` + long + `/new": a name in it is too long`, syscall.ENAMETOOLONG},
			{unsearched, `read file "unsearched/file": permission denied`, fs.ErrPermission},
			{unlisted, `list files "unsearched/dir": permission denied`, fs.ErrPermission},
		} {
			refusedAs(t, c.err, c.want, c.is)
		}
		say(t, tools.Shell, agent.ShellInput{Command: "rmdir closed unsearched"})
	})
}

func refusedAs(t *testing.T, err error, want string, is error) {
	t.Helper()
	if err == nil || err.Error() != want || !errors.Is(err, is) {
		t.Errorf("got  %v\nwant %s, which is %v", err, want, is)
	}
}

func TestWritesWhatIsReadOnly(t *testing.T) {
	testenv.NoRace(t)
	dir := testbox.Workspace(t)
	if err := os.Mkdir(filepath.Join(dir, ".idea"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".idea", "there"), []byte("x\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, ".idea", "there"), 0o666); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(dir, ".idea"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	_, tools := hands(t, engine.Spec{FS: engine.FS{Workspace: dir, Protect: engine.ProtectStrict}, Limits: engine.Limits{Tmp: engine.MiB}},
		agent.Options{})
	for _, p := range []string{".vscode/x", ".vscode/a/b", ".idea/there", ".idea/new", "/usr/new", "/usr/new/new"} {
		_, err := tools.WriteFile(t.Context(), agent.WriteInput{Path: p, Content: "x"})
		refusedAs(t, err, `write file "`+p+`": read-only in this sandbox`, fs.ErrPermission)
	}
	_, err := tools.PatchFile(t.Context(), agent.PatchInput{Path: ".idea/there", FromLine: 1, Content: "y"})
	refusedAs(t, err, `patch file ".idea/there": read-only in this sandbox`, fs.ErrPermission)
	_, err = tools.WriteFile(t.Context(), agent.WriteInput{Path: "/tmp/much", Content: strings.Repeat("x", 2<<20)})
	refusedAs(t, err, `write file "/tmp/much": no space left`, syscall.ENOSPC)
	if list := say(t, tools.ListFiles,
		agent.ListInput{Path: "/tmp"}); regexp.MustCompile(`\.write-|much`).MatchString(list) {
		t.Errorf("left: %s", list)
	}
}

// Placeholders in a workspace are not listed. Real files are, whatever their names.
func TestHidesPlaceholders(t *testing.T) {
	testenv.NoRace(t)
	names := func(t *testing.T, tools *agent.Tools, path string) string {
		t.Helper()
		var names []string
		for line := range strings.Lines(say(t, tools.ListFiles, agent.ListInput{Path: path})) {
			fields := strings.Fields(line)
			names = append(names, fields[len(fields)-1])
		}
		return strings.Join(names, " ")
	}
	dir := testbox.Workspace(t)
	_, tools := hands(t, engine.Spec{FS: engine.FS{Workspace: dir, Protect: engine.ProtectStrict}}, agent.Options{})
	same(t, say(t, tools.ListFiles, agent.ListInput{}), "(empty directory)")
	say(t, tools.Shell, agent.ShellInput{Command: "mkdir -p sub/.vscode .hidden; ln -s . here; : >file; " +
		"chmod a-w .hidden"})
	for _, p := range []string{"", dir, "here", "sub/.."} {
		same(t, names(t, tools, p), ".hidden/ sub/ file here")
	}
	same(t, names(t, tools, "sub"), ".vscode/")
	same(t, say(t, tools.ListFiles, agent.ListInput{Path: "/"}) != "(empty directory)", true)

	for _, p := range []string{".npmrc", dir + "/.npmrc", "sub/../.npmrc"} {
		_, err := tools.WriteFile(t.Context(), agent.WriteInput{Path: p, Content: "x"})
		refusedAs(t, err, `write file "`+p+`": read-only in this sandbox`, fs.ErrPermission)
	}
	_, err := tools.ReadFile(t.Context(), agent.ReadInput{Path: ".npmrc"})
	refusedAs(t, err, `read file ".npmrc": file does not exist`, fs.ErrNotExist)

	t.Run("what is there", func(t *testing.T) {
		dir := testbox.Workspace(t)
		for _, d := range []string{".git/refs", ".git/objects", ".idea"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, tools := hands(t, engine.Spec{FS: engine.FS{Workspace: dir, Protect: engine.ProtectStrict,
			AllowWrite: []string{".cursor"}}}, agent.Options{})
		say(t, tools.WriteFile, agent.WriteInput{Path: ".cursor/mine", Content: "x"})
		same(t, names(t, tools, ""), ".cursor/ .git/ .idea/")
		same(t, names(t, tools, ".git"), "objects/ refs/ HEAD")
		if os.Geteuid() != 0 {
			return // nobody else may put something into a placeholder
		}
		if err := os.WriteFile(filepath.Join(dir, ".vscode", "x"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		same(t, names(t, tools, ""), ".cursor/ .git/ .idea/ .vscode/")
	})
}

// A file that is moved aside as soon as it is written has not been written, and the model
// is told why.
func TestSaysWhatIsHeldBack(t *testing.T) {
	testenv.NoRace(t)
	dir := testbox.Workspace(t)
	_, tools := hands(t, engine.Spec{FS: engine.FS{Workspace: dir}}, agent.Options{})
	for p, why := range map[string]string{
		".vscode/tasks.json": "editors", ".mcp.json": "agents", ".cursor/rules/x": "agents", "sub/../.vscode/y": "editors",
	} {
		_, err := tools.WriteFile(t.Context(), agent.WriteInput{Path: p, Content: "x"})
		refusedAs(t, err, `write file "`+p+`": held back: it is a file which `+why+` execute`, fs.ErrPermission)
	}
	say(t, tools.WriteFile, agent.WriteInput{Path: ".npmrc", Content: "x"})
	same(t, say(t, tools.ReadFile, agent.ReadInput{Path: ".npmrc"}), "x")
}
