package engine

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/rootfs"
)

func TestGitUser(t *testing.T) {
	for _, c := range []struct{ name, config, xdg, want string }{
		{"plain", "[user]\n\tname = A B\n\temail = a@x\n", "", "[user]\n\tname = \"A B\"\n\temail = \"a@x\"\n"},
		{"quoted, with comments", "# x\n[USER]\n\tName = \"A # B\"\n\temail = a@x # mine\n", "", "[user]\n\tname = \"A # B\"\n\temail = \"a@x\"\n"},
		{"the later file wins", "[user]\n\tname = b\n", "[user]\n\tname = a\n\temail = a@x\n", "[user]\n\tname = \"b\"\n\temail = \"a@x\"\n"},
		{"nothing else", "[credential]\n\thelper = store\n[alias]\n\tx = !evil\n[user]\n\tsigningkey = k\n", "", ""},
		{"git-lfs", "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n", "", "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n"},
		{"another filter", "[filter \"lfs\"]\n\tclean = evil\n", "", ""},
		{"forged", "[user]\n\tname = \"a\\\"\\n[core]\\nfsmonitor=evil\"\n", "", ""},
	} {
		h := treeOf(map[string]string{"/w/": ""})
		h.Home = "/w-home"
		files := map[string]string{"/w-home/.gitconfig": c.config, "/w-home/.config/git/config": c.xdg}
		look, read := h.Lookup, h.ReadFile
		h.Lookup = func(p string) (rootfs.Source, error) {
			if files[p] != "" {
				return rootfs.Source{Path: p, UID: 1234}, nil
			}
			if strings.HasPrefix(p, "/w-home") {
				return rootfs.Source{}, &fs.PathError{Op: "find", Path: p, Err: fs.ErrNotExist}
			}
			return look(p)
		}
		h.ReadFile = func(p string) ([]byte, error) {
			if text := files[p]; text != "" {
				return []byte(text), nil
			}
			return read(p)
		}
		p, err := Compile(Spec{FS: FS{Workspace: "/w"}}, h)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range p.config.Table {
			if n.Path == "/etc/gitconfig" {
				got = n.Data
			}
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
