package engine

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// treeOf is a Host with these files: directories end in a slash, links have
// "-> " and where they lead, placeholders are "placeholder", and the rest is the file's
// content.
func treeOf(files map[string]string) Host {
	h := machineOf(Host{UID: 1234}, nil)
	system := h.Lookup
	h.Lookup = func(p string) (rootfs.Source, error) {
		if !strings.HasPrefix(p, "/w") && !strings.HasPrefix(p, "/main") {
			return system(p)
		}
		src := rootfs.Source{Path: p, Identity: rootfs.Identity{Ino: uint64(len(p))}, UID: 1234, Mode: 0o644}
		switch v, ok := files[p]; {
		case strings.HasPrefix(v, "-> "):
			src.Path = path.Join(path.Dir(p), v[3:])
		case v == "placeholder":
			src.Mode = 0o1444
		case v == "another's":
			src.UID, src.Dir = 5, true
		case ok:
		default:
			src.Dir = true
			if _, ok := files[p+"/"]; !ok {
				return src, &fs.PathError{Op: "find", Path: p, Err: fs.ErrNotExist}
			}
		}
		return src, nil
	}
	h.ReadFile = func(p string) ([]byte, error) {
		if v, ok := files[p]; ok {
			if v == "placeholder" {
				v = "."
			}
			return []byte(v + "\n"), nil
		}
		return nil, fs.ErrNotExist
	}
	return h
}

// protection is what a plan says of the places that guests may write to, with
// names in short.
func protection(p *Plan) (lines []string) {
	for line := range strings.Lines(p.String()) {
		for _, prefix := range []string{"bind     /w", "bind     /main", "placeholder ", "note "} {
			if strings.HasPrefix(line, prefix) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), " from ")
				f := strings.Fields(line)
				access := ""
				if f[0] == "bind" && strings.Contains(p.String(), line+" from "+f[1]+" (ro)") {
					access = " ro"
				}
				if f[0] == "placeholder" || f[0] == "bind" {
					f = f[:2]
				}
				lines = append(lines, strings.Join(f, " ")+access)
			}
		}
	}
	return lines
}

func TestProtect(t *testing.T) {
	repo := map[string]string{
		"/w/": "", "/w/.git/": "", "/w/.git/hooks/": "", "/w/.git/config": "", "/w/.git/commondir": "placeholder", "/w/.github/": "", "/w/.github/workflows/": "",
	}
	linked := map[string]string{
		"/w/": "", "/w/.git": "gitdir: /main/.git/worktrees/w",
		"/main/.git/": "", "/main/.git/config": "", "/main/.git/hooks/": "", "/main/.git/worktrees/": "",
		"/main/.git/worktrees/w/": "", "/main/.git/worktrees/w/commondir": "../..", "/main/.git/worktrees/w/gitdir": "/w/.git",
	}
	with := func(files map[string]string, more ...string) map[string]string {
		all := make(map[string]string)
		for k, v := range files {
			all[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		allow []string
		want  []string // among the lines
		not   []string
	}{
		{"nothing there", map[string]string{"/w/": ""}, nil,
			[]string{"bind /w", "placeholder /w/.git", "placeholder /w/.vscode", "placeholder /w/.github"}, []string{"placeholder /w/.bashrc", "placeholder /w/.git/hooks", "placeholder /w/Jenkinsfile"}},
		{"a repository", repo, nil,
			[]string{"bind /w/.git", "bind /w/.git/hooks ro", "bind /w/.git/config ro", "placeholder /w/.git/commondir", "placeholder /w/.git/modules", "bind /w/.github", "bind /w/.github/workflows ro", "placeholder /w/.github/actions"},
			[]string{"placeholder /w/.git", "placeholder /w/.github", "placeholder /w/.git/worktrees"}},
		{"a part opened", repo, []string{".git/config", "/w/.github"},
			[]string{"bind /w/.git/hooks ro"}, []string{"bind /w/.git/config ro", "bind /w/.github", "placeholder /w/.github/actions"}},
		{"git opened", repo, []string{".git/"}, []string{"bind /w/.github/workflows ro"}, []string{"bind /w/.git", "bind /w/.git/hooks ro"}},
		{"all opened", repo, []string{"."}, []string{"bind /w"}, []string{"bind /w/.git", "placeholder /w/.vscode"}},
		{"a file for a directory", with(repo, "/w/.github/", "", "/w/.vscode", ""), nil, []string{"bind /w/.vscode ro"}, nil},
		{"a file for a parent", map[string]string{"/w/": "", "/w/.github": "text"}, nil, []string{"bind /w/.github ro"}, []string{"placeholder /w/.github/actions"}},
		{"a home", map[string]string{"/w/": "", "/w/.profile": ""}, nil, []string{"bind /w/.profile ro", "placeholder /w/.bashrc", "placeholder /w/.gitconfig"}, nil},
		{"in use", map[string]string{"/w/": "", "/w/Jenkinsfile": "", "/w/.husky/": ""}, nil, []string{"bind /w/Jenkinsfile ro", "bind /w/.husky ro"}, []string{"placeholder /w/.drone.yml"}},
		{"a linked worktree", linked, nil,
			[]string{"bind /w/.git ro", "bind /main/.git", "bind /main/.git/hooks ro", "bind /main/.git/worktrees ro", "bind /main/.git/worktrees/w",
				"bind /main/.git/worktrees/w/commondir ro", "placeholder /main/.git/worktrees/w/config.worktree"}, nil},
		{"a linked worktree, opened", linked, []string{".git"}, []string{"bind /main/.git"}, []string{"bind /w/.git ro", "bind /main/.git/hooks ro", "placeholder /main/.git/modules"}},
		{"another's worktree", with(linked, "/main/.git/worktrees/w/gitdir", "/other/.git"), nil,
			[]string{"bind /w/.git ro", "note /w/.git: leads to \"/main/.git/worktrees/w\", which does not lead back: git does not work inside"}, []string{"bind /main/.git"}},
		{"another user's", with(linked, "/main/.git", "another's"), nil, []string{"bind /w/.git ro"}, []string{"bind /main/.git"}},
		{"a worktree of elsewhere", with(linked, "/main/.git/worktrees/w/commondir", "../../.."), nil, []string{"bind /w/.git ro"}, []string{"bind /main", "bind /main/.git"}},
		{"a worktree behind a link", with(linked, "/main/.git/worktrees/w", "-> /main/x"), nil, []string{"bind /w/.git ro"}, []string{"bind /main/.git"}},
		{"a repository beside", map[string]string{"/w/": "", "/w/.git": "gitdir: ./a/.bare", "/w/a/": "", "/w/a/.bare/": "", "/w/a/.bare/hooks/": ""}, nil,
			[]string{"bind /w/.git ro", "bind /w/a", "bind /w/a/.bare", "bind /w/a/.bare/hooks ro", "placeholder /w/a/.bare/config"}, nil},
		{"a forged plan", map[string]string{"/w/": "", "/w/.git": "gitdir: /main/x\nbind     /w/.vscode \x1b[2J"}, nil, nil, []string{"bind /w/.vscode"}},
		{"a submodule", map[string]string{"/w/": "", "/w/.git": "gitdir: /main/.git", "/main/.git/": ""}, nil,
			[]string{"bind /w/.git ro"}, []string{"bind /main/.git"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(Spec{FS: FS{Workspace: "/w", AllowWrite: c.allow, Protect: ProtectStrict}}, treeOf(c.files))
			if err != nil {
				t.Fatal(err)
			}
			got := protection(p)
			for _, l := range c.want {
				if !slices.Contains(got, l) {
					t.Errorf("no %q", l)
				}
			}
			for _, l := range c.not {
				if slices.Contains(got, l) {
					t.Errorf("%q", l)
				}
			}
			if t.Failed() {
				t.Log(strings.Join(got, "\n"))
			}
		})
	}
}

// By default nothing is made in a workspace but in its directory of git: what guests may
// not make is watched for.
func TestProtectByWatching(t *testing.T) {
	h := treeOf(map[string]string{
		"/w/": "", "/w/.git/": "", "/w/.git/hooks/": "", "/w/.git/config": "", "/w/.hg/": "", "/w/.mcp.json": "",
		"/w/.git/worktrees/": "", "/w/.git/worktrees/x/": "", "/w/.git/worktrees/x/commondir": "../..",
	})
	h.ReadDir = func(string) ([]string, error) { return []string{"x"}, nil }
	p, err := Compile(Spec{FS: FS{Workspace: "/w", AllowWrite: []string{".zed"}}}, h)
	if err != nil {
		t.Fatal(err)
	}
	text := p.String()
	for _, line := range []string{
		"bind     /w/.mcp.json from /w/.mcp.json (ro)", "bind     /w/.git/hooks from /w/.git/hooks (ro)",
		"bind     /w/.hg from /w/.hg (rw)", // so that it cannot be moved away
		"bind     /w/.git/worktrees/x from /w/.git/worktrees/x (rw)",
		"bind     /w/.git/worktrees/x/commondir from /w/.git/worktrees/x/commondir (ro)",
		"watch    /w/.vscode (moved aside if it is made)", "watch    /w/.hg/hgrc (moved aside if it is made)",
		"watch    /w/.npmrc (reported if it is made)", "watch    /w/.github/workflows (reported if it is made)",
		"watch    /w/HEAD (moved aside if the directory becomes a repository)",
		"watch    /w/.git/worktrees (may be made; what git would execute in it is moved aside)",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %q", line)
		}
	}
	for _, at := range p.Placeholders() {
		if !strings.HasPrefix(at, "/w/.git/") {
			t.Errorf("a placeholder at %s", at)
		}
	}
	if strings.Contains(text, ".zed") {
		t.Error("what may be written to is watched")
	}
	if t.Failed() {
		t.Log(text)
	}
	for _, s := range []FS{{Workspace: "/w", Protect: "none"}, {Protect: ProtectStrict}} {
		if _, err := Compile(Spec{FS: s}, h); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "protect") {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if p, err := Compile(Spec{FS: FS{Workspace: "/w", Protect: ProtectOff}}, h); err != nil || strings.Contains(p.String(), "/w/.") {
		t.Errorf("off: %v, %v", p, err)
	}
	h.HeldDir = "/w/.local/state"
	if p, err := Compile(Spec{FS: FS{Workspace: "/w"}}, h); err != nil || rootfs.Within("/w", p.config.Held) {
		t.Errorf("holds back in the workspace: %v", err)
	}
}

func TestProtectRefuses(t *testing.T) {
	for _, c := range []struct {
		name, allow string
		files       map[string]string
		says        string
	}{
		{"a link", ".vscode/", map[string]string{"/w/.mcp.json": "-> x"}, "/w/.mcp.json: it is a symbolic link"},
		{"a link for .git", ".vscode", map[string]string{"/w/.git": "-> x"}, "/w/.git: it is a symbolic link"},
		{"a link for a parent", ".vscode", map[string]string{"/w/.github": "-> x"}, "/w/.github: it is a symbolic link"},
		{"a repository beside, behind a link", ".vscode", map[string]string{"/w/.git": "gitdir: bare", "/w/bare": "-> x"}, "leads to \"/w/bare\", which is no directory"},
		{"a repository beside, missing", ".vscode", map[string]string{"/w/.git": "gitdir: bare"}, "leads to \"/w/bare\", which is no directory"},
		{"a worktree in itself", ".vscode", map[string]string{"/w/.git": "gitdir: b/worktrees/w", "/w/b/": "", "/w/b/worktrees/": "", "/w/b/worktrees/w/": "", "/w/b/worktrees/w/commondir": "../.."}, "which does not lead back"},
		{"settings elsewhere", ".vscode", map[string]string{"/w/.git/": "", "/w/.git/commondir": "../x"}, "commondir redirects git"},
		{"all, by mistake", "", nil, "an empty path"},
		{"beneath one", ".vscode/x", nil, ".vscode is protected as a whole"},
		{"nothing", "src", nil, "not protected; protected are: .git/hooks .git/config "},
		{"elsewhere", "../x", nil, "not in the workspace"},
		{"elsewhere, absolute", "/x/.git", nil, "not in the workspace"},
		{"a part of what is missing", ".github/actions", nil, ".github does not exist yet"},
		{"a part of a missing repository", ".git/hooks", nil, ".git does not exist yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"/w/": ""}
			for k, v := range c.files {
				files[k] = v
			}
			p, err := Compile(Spec{FS: FS{Workspace: "/w", AllowWrite: []string{c.allow}, Protect: ProtectStrict}}, treeOf(files))
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("got %v, %v; want one line that says %q", p, err, c.says)
			}
		})
	}
	if err := (Spec{FS: FS{AllowWrite: []string{".git"}}}).Validate(); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// What is mounted by the Spec at a protected path, or above it, is as it says.
func TestMountsWinOverProtection(t *testing.T) {
	files := map[string]string{"/w/": "", "/w/.git/": "", "/w/.git/hooks/": "", "/w/x/": ""}
	p, err := Compile(Spec{FS: FS{Workspace: "/w", Protect: ProtectStrict, Mounts: []Mount{
		{Type: MountBind, Source: "/w/x", Target: "/w/.git/hooks"}, {Type: MountBind, Source: "/w/x", Target: "/w/.vscode"}, {Type: MountTmpfs, Target: "/w/.github"},
	}}}, treeOf(files))
	if err != nil {
		t.Fatal(err)
	}
	got := protection(p)
	for _, l := range []string{"bind /w/.git/hooks ro", "placeholder /w/.vscode", "placeholder /w/.github/workflows"} {
		if slices.Contains(got, l) {
			t.Errorf("%q", l)
		}
	}
	if !slices.Contains(got, "placeholder /w/.git/modules") {
		t.Errorf("%v", got)
	}
}

// A workspace that cannot be searched is one mistake, and not one for each name that
// would be protected in it.
func TestClosedWorkspace(t *testing.T) {
	h := treeOf(map[string]string{"/w/": ""})
	open := h.Lookup
	h.Lookup = func(p string) (rootfs.Source, error) {
		if strings.HasPrefix(p, "/w/") {
			return rootfs.Source{}, &fs.PathError{Op: "find", Path: p, Err: syscall.EACCES}
		}
		return open(p)
	}
	_, err := Compile(Spec{FS: FS{Workspace: "/w"}}, h)
	if want := "compile: invalid: workspace /w: permission denied"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
