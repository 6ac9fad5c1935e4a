package protect

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// A tree is the files of a made-up host: directories end in a slash, "-> x" is a
// link to a sibling, "!" is what cannot be looked at, and the rest is a file's content.
type tree map[string]string

var errHidden = errors.New("hidden")

func (files tree) lookup(p string) (rootfs.Source, error) {
	src := rootfs.Source{Path: p, Identity: rootfs.Identity{Ino: uint64(len(p))}, Mode: 0o644, UID: 1}
	if _, ok := files[p+"/"]; ok {
		src.Dir, src.Mode = true, 0o755
		return src, nil
	}
	text, ok := files[p]
	switch {
	case !ok:
		return src, &fs.PathError{Op: "find", Path: p, Err: fs.ErrNotExist}
	case text == "!":
		return src, &fs.PathError{Op: "find", Path: p, Err: errHidden}
	case strings.HasPrefix(text, "-> "):
		src.Path = path.Join(path.Dir(p), text[3:])
	case text == "placeholder":
		src.Mode = 0o1444
	}
	return src, nil
}

func (files tree) lookupLink(p string) (rootfs.Source, error) {
	if to, ok := strings.CutPrefix(files[p], "-> "); ok {
		return rootfs.Source{Path: p, Link: to}, nil
	}
	return rootfs.Source{}, fs.ErrInvalid
}

func (files tree) read(p string) ([]byte, error) {
	if text, ok := files[p]; ok {
		return []byte(text + "\n"), nil
	}
	return nil, fs.ErrNotExist
}

// decide protects /w of a host with these files.
func decide(files tree, change func(*Options)) (Decision, []error) {
	o := Options{At: "/w", Strict: true, Lookup: files.lookup, ReadFile: files.read, Mountable: func(string) error { return nil }}
	o.Workspace, _ = files.lookup("/w")
	o.LookupLink = files.lookupLink
	if change != nil {
		change(&o)
	}
	return Decide(o)
}

// summary is a decision in short: "ro /w/.git/hooks", "pin /w/.git", "placeholder …".
func summary(d Decision) (lines []string) {
	for _, n := range d.Nodes {
		word := "pin "
		if n.ReadOnly {
			word = "ro "
		}
		lines = append(lines, word+n.Path)
	}
	for _, dir := range d.Dirs {
		for _, p := range dir.Placeholders {
			for _, at := range p.At {
				kind := "placeholder "
				switch {
				case p.File:
					kind = "file "
				case p.Closed:
					kind = "closed "
				}
				lines = append(lines, kind+at)
			}
		}
	}
	return append(lines, d.Notes...)
}

func TestDecide(t *testing.T) {
	empty := tree{"/w/": ""}
	for _, c := range []struct {
		name   string
		files  tree
		change func(*Options)
		want   string // among the lines, separated by commas
		not    string
	}{
		{"an empty workspace", empty, nil,
			"placeholder /w/.git,placeholder /w/.vscode,closed /w/refs,placeholder /w/commondir",
			"placeholder /w/.husky,placeholder /w/.bashrc,closed /w/objects"},
		{"under two names", empty, func(o *Options) { o.At = "/link" }, "placeholder /w/.git,placeholder /link/.git", ""},
		{"a mount in a protected place", empty, func(o *Options) { o.Mounts = []string{"/w/.vscode", "/w/.github"} },
			"placeholder /w/.git", "placeholder /w/.vscode,placeholder /w/.github/workflows"},
		{"one opened", empty, func(o *Options) { o.AllowWrite = []string{".vscode"} },
			"placeholder /w/.git", "placeholder /w/.vscode"},
		{"a repository", tree{"/w/": "", "/w/.git/": "", "/w/.git/hooks/": "", "/w/.git/config": "x"}, nil,
			"pin /w/.git,ro /w/.git/hooks,ro /w/.git/config,file /w/.git/commondir,placeholder /w/.git/modules",
			"placeholder /w/.git"},
		{"a bare repository", tree{"/w/": "", "/w/refs/": "", "/w/objects/": "", "/w/HEAD": "x", "/w/config": "x"}, nil,
			"ro /w/config,placeholder /w/hooks", "closed /w/refs"},
		{"a home", tree{"/w/": "", "/w/.zshrc": ""}, nil, "ro /w/.zshrc,placeholder /w/.bashrc", ""},
		{"in use", tree{"/w/": "", "/w/.husky/": ""}, nil, "ro /w/.husky", ""},
		{"links", tree{"/w/": "", "/w/.claude": "-> agents", "/w/agents/": "", "/w/.cursor": "-> none", "/w/.github": "-> gh",
			"/w/gh/": "", "/w/.git": "-> git", "/w/git/": "", "/w/git/hooks/": "", "/w/.zed": "-> ../x"}, nil,
			"ro /w/.claude,ro /w/agents,ro /w/.cursor,placeholder /w/none,ro /w/.github,placeholder /w/gh/workflows," +
				"ro /w/.git,pin /w/git,ro /w/git/hooks,placeholder /w/git/modules,ro /w/.zed", "placeholder /w/.claude,ro /x"},
		{"links in a circle", tree{"/w/": "", "/w/.claude": "-> .cursor", "/w/.cursor": "-> .claude"}, nil,
			"ro /w/.claude,ro /w/.cursor", ""},
		{"what a killed host left behind", tree{"/w/": "", "/w/.npmrc": "placeholder"}, nil,
			"placeholder /w/.npmrc", "ro /w/.npmrc"},
		{"no file of git", tree{"/w/": "", "/w/.git": "x"}, nil, "ro /w/.git,/w/.git: not a file of git", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, errs := decide(c.files, c.change)
			if len(errs) > 0 || len(d.Nodes)+len(d.Dirs) == 0 {
				t.Fatalf("%v, %v", d, errs)
			}
			got := summary(d)
			for _, line := range strings.Split(c.want, ",") {
				if !slices.Contains(got, line) {
					t.Errorf("no %q", line)
				}
			}
			for _, line := range strings.Split(c.not, ",") {
				if line != "" && slices.Contains(got, line) {
					t.Errorf("%q", line)
				}
			}
			if t.Failed() {
				t.Log(strings.Join(got, "\n"))
			}
		})
	}
	d, errs := decide(empty, func(o *Options) { o.AllowWrite = []string{"."} })
	if len(errs) > 0 || len(summary(d)) > 0 {
		t.Errorf("all opened: %v, %v", summary(d), errs)
	}
}

// Each mistake is reported once, whichever names it is in the way of.
func TestDecideErrors(t *testing.T) {
	refused := errors.New("not there")
	noLinks := func(o *Options) { o.LookupLink = nil } // nothing can be mounted upon them
	for _, c := range []struct {
		name   string
		files  tree
		change func(*Options)
		says   string
		is     error // may be nil
	}{
		{"a link", tree{"/w/.vscode": "-> x"}, noLinks, "protect /w/.vscode: it is a symbolic link", nil},
		{"a link above", tree{"/w/.github": "-> x"}, noLinks, "protect /w/.github: it is a symbolic link", nil},
		{"what cannot be looked at", tree{"/w/.npmrc": "!"}, nil, "protect /w/.npmrc: hidden", errHidden},
		{"a parent that does not exist", nil, func(o *Options) { o.AllowWrite = []string{".git/hooks"} },
			".git does not exist yet", nil},
		{"a repository that may not be mounted", tree{
			"/w/.git": "gitdir: /m/worktrees/w", "/m/": "", "/m/worktrees/": "", "/m/worktrees/w/": "",
			"/m/worktrees/w/commondir": "../..", "/m/worktrees/w/gitdir": "/w/.git",
		}, func(o *Options) { o.Mountable = func(string) error { return refused } }, "not there", refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := tree{"/w/": ""}
			for k, v := range c.files {
				files[k] = v
			}
			_, errs := decide(files, c.change)
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.says) || c.is != nil && !errors.Is(errs[0], c.is) {
				t.Errorf("got %v, want one that says %q", errs, c.says)
			}
		})
	}
}

// Under an overlay what is protected does not leave it, and nothing outside of the
// workspace can be changed.
func TestRules(t *testing.T) {
	d, errs := decide(tree{
		"/w/": "", "/w/.vscode/": "", "/w/.git": "gitdir: /m/worktrees/w",
		"/m/": "", "/m/hooks/": "", "/m/worktrees/": "", "/m/worktrees/w/": "",
		"/m/worktrees/w/commondir": "../..", "/m/worktrees/w/gitdir": "/w/.git",
	}, func(o *Options) { o.At = "/link" })
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	rules, outside := d.Rules()
	for _, name := range []string{".vscode", ".git", ".npmrc", ".github", "refs"} {
		if !slices.Contains(rules.Protected, name) {
			t.Errorf("%s is not protected: %v", name, rules.Protected)
		}
	}
	for _, list := range [][]string{rules.Protected, rules.Pinned} {
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("not sorted, or with doubles: %v", list)
		}
		if slices.ContainsFunc(list, path.IsAbs) {
			t.Errorf("not relative: %v", list)
		}
	}
	found := false
	for _, n := range outside {
		found = found || n.Path == "/m"
		if !n.ReadOnly || !rootfs.Within("/m", n.Path) {
			t.Errorf("%s, read-only %v", n.Path, n.ReadOnly)
		}
	}
	if !found {
		t.Errorf("the repository is not mounted: %v", outside)
	}
	d, _ = decide(tree{"/w/": "", "/w/.git/": "", "/w/.git/hooks/": ""}, nil)
	if rules, _ := d.Rules(); !slices.Contains(rules.Pinned, ".git") {
		t.Errorf("pinned %v", rules.Pinned)
	}
}

// Only placeholders that were made are mounted, and a lock lies beside them.
func TestMount(t *testing.T) {
	dirs := []Dir{
		{At: []string{"/w", "/link"}, Placeholders: []Placeholder{
			{Name: ".git", At: []string{"/w/.git", "/link/.git"}}, {Name: ".npmrc", At: []string{"/w/.npmrc"}},
		}},
		{At: []string{"/m"}, Placeholders: []Placeholder{{Name: "hooks", At: []string{"/m/hooks"}}}},
	}
	table := rootfs.Table{{Path: "/w", Kind: rootfs.Bind}}
	got := Mount(table, dirs, func(d Dir, p Placeholder) (rootfs.Source, bool) {
		return rootfs.Source{Path: path.Join(d.At[0], p.Name)}, p.Name == ".git"
	})
	var paths []string
	for _, n := range got {
		paths = append(paths, n.Path)
		if n.Path == "/link/.git" && (n.Source.Path != "/w/.git" || !n.ReadOnly || n.Kind != rootfs.Bind) {
			t.Errorf("got %+v", n)
		}
	}
	slices.Sort(paths)
	if want := "/link/.git /link/.tegmen /w /w/.git /w/.tegmen"; strings.Join(paths, " ") != want {
		t.Errorf("got %v, want %s", paths, want)
	}
	if len(table) != 1 {
		t.Error("the table it was given has changed")
	}
	if got, want := strings.Join(Paths(dirs), " "),
		"/link/.git /link/.tegmen /m/.tegmen /m/hooks /w/.git /w/.npmrc /w/.tegmen"; got != want {
		t.Errorf("paths %s, want %s", got, want)
	}
}

func TestRelative(t *testing.T) {
	for _, c := range []struct{ entry, want string }{
		{".git", ".git"}, {"./.git/", ".git"}, {"/w/.git", ".git"}, {"/w", "."}, {".", "."}, {"", "."},
		{"..", ""}, {"../w", "."}, {"/x", ""}, {"/wx", ""}, {"a/../../x", ""},
	} {
		if got := Relative("/w", c.entry); got != c.want {
			t.Errorf("%q: %q, want %q", c.entry, got, c.want)
		}
	}
}

func TestCheckAllowWrite(t *testing.T) {
	good := []string{".", ".git", "/w/.git/hooks", ".github", ".vscode", "refs"}
	if errs := CheckAllowWrite("/w", good); len(errs) > 0 {
		t.Errorf("got %v", errs)
	}
	for entry, says := range map[string]string{
		"": "an empty path", "../x": "not in the workspace", "/x": "not in the workspace",
		".vscode/x": ".vscode is protected as a whole", "src": "not protected; protected are: ",
	} {
		errs := CheckAllowWrite("/w", []string{".git", entry})
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), says) {
			t.Errorf("%q: %v", entry, errs)
		}
	}
}
