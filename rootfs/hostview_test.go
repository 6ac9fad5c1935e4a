package rootfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// list lists the names in a directory of the machine.
func (m machine) list(dir string) (names []string, err error) {
	if !slices.Contains(m.dirs, dir) {
		return nil, fs.ErrPermission
	}
	for _, p := range slices.Concat(m.dirs, m.files) {
		if p != "/" && path.Dir(p) == dir {
			names = append(names, path.Base(p))
		}
	}
	return names, nil
}

// viewed is a machine with a home directory.
func viewed() machine {
	return host("/", "/usr", "/home", "/home/u", "/home/u/.config", "/home/u/.config/gh", "/home/u/.ssh", "/home/u/src",
		"/data", "/data/keys", "/opt", "/var", "/var/tmp", "/var/lib", "/proc", "/run", "/run/user", "/mnt", "/mnt/b", "/mnt/b/.ssh")
}

func ext4(at string) rootfs.HostMount {
	return rootfs.HostMount{Path: at, Root: "/", Type: "ext4", Dev: "8:" + at}
}

func TestHostView(t *testing.T) {
	for _, c := range []struct {
		name string
		m    machine
		v    rootfs.HostView
		want map[string]string // nodes as a Plan prints them, without their paths and spaces; "" is no node
		hide []string          // in the view of HOME
	}{
		{"one file system", viewed(), rootfs.HostView{Home: "/home/u", Hidden: []string{"/home/u/.ssh", "/home/u/.config/gh"}},
			map[string]string{
				"/home": "view from /home (ro, 0 hidden)", "/opt": "view from /opt (ro, 0 hidden)", "/proc": "proc", "/run/user": "",
				"/home/u":  "view from /home/u (changes are lost: 1048576 bytes, 100 inodes, 2 hidden)",
				"/var/tmp": "tmpfs (1048576 bytes, 100 inodes, mode 1777)", "/usr": "bind from /usr (ro)",
			}, []string{".config/gh", ".ssh"}},
		{"what is missing is hidden once it exists", viewed(),
			rootfs.HostView{Home: "/home/u", Later: true, Hidden: []string{"/home/u/.aws/x/y", "/home/u/.aws/z", "/home/u/src/.env"}},
			nil, []string{".aws", "src/.env"}},
		{"what is missing is left alone", viewed(), rootfs.HostView{Home: "/home/u", Hidden: []string{"/home/u/.aws/x"}}, nil, nil},
		{"links", viewed().link("/home/u/.kube", "/data/keys").link("/home/u/l", "/home/u/.config"),
			rootfs.HostView{Home: "/home/u", Later: true, Hidden: []string{"/home/u/.kube", "/home/u/l/gh"}},
			map[string]string{"/data": "view from /data (ro, 1 hidden)"}, []string{".config/gh", ".kube"}},
		{"nested", viewed(), rootfs.HostView{Home: "/home/u", Hidden: []string{"/home/u/.config", "/home/u/.config/gh"}}, nil, []string{".config"}},
		{"a whole directory", viewed(), rootfs.HostView{Hidden: []string{"/opt", "/data"}}, map[string]string{"/opt": "", "/data": ""}, nil},
		{"mounts", viewed(), rootfs.HostView{Home: "/home/u", Mounts: []rootfs.HostMount{ext4("/"), ext4("/home/u/src"),
			{Path: "/mnt/b", Type: "vfat", Dev: "8:9", Root: "/"}, {Path: "/opt", Type: "fuse.sshfs", Dev: "0:9", Root: "/"}},
			Hidden: []string{"/home/u/.ssh"}},
			map[string]string{
				"/home": "dir", "/home/u": "tmpfs (1048576 bytes, 100 inodes, mode 700)", "/home/u/.ssh": "",
				"/home/u/.config": "view from /home/u/.config (changes are lost: 1048576 bytes, 100 inodes, 0 hidden)",
				"/home/u/src":     "view from /home/u/src (changes are lost: 1048576 bytes, 100 inodes, 0 hidden)",
				"/mnt":            "dir", "/mnt/b": "bind from /mnt/b (ro)", "/opt": "dir",
			}, nil},
		{"a home directory that an automounter holds", viewed(), rootfs.HostView{Home: "/home/u", Mounts: []rootfs.HostMount{ext4("/"),
			{Path: "/home", Type: "autofs", Dev: "0:9", Root: "/"}, ext4("/home/u")}, Hidden: []string{"/home/u/.ssh"}},
			map[string]string{"/home": "dir"}, []string{".ssh"}},
		{"mounted twice", viewed(), rootfs.HostView{Mounts: []rootfs.HostMount{{Path: "/", Root: "/@", Type: "btrfs", Dev: "0:5"},
			{Path: "/home", Root: "/@home", Type: "btrfs", Dev: "0:5"}, {Path: "/mnt/b", Root: "/@home/u", Type: "btrfs", Dev: "0:5"}},
			Hidden: []string{"/home/u/.ssh"}}, map[string]string{"/mnt/b": "view from /mnt/b (ro, 1 hidden)"}, nil},
		{"what is bound is not hidden", viewed(), rootfs.HostView{Home: "/home/u", Hidden: []string{"/home/u/.ssh", "/home/u/.config/gh"},
			Bound: []string{"/home/u/.ssh/known_hosts", "/home/u/.config/gh"}}, map[string]string{"/home/u/.ssh": "static"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, err := rootfs.Host(c.m.look, options)
			if err != nil {
				t.Fatal(err)
			}
			c.v.Look, c.v.List = c.m.look, c.m.list
			table, _, _, err := c.v.Tree(base, options)
			if err != nil {
				t.Fatal(err)
			}
			for at, want := range c.want {
				got := ""
				if n := find(table, at); n.Kind != 0 {
					got = strings.Join(strings.Fields(strings.Replace(n.String(), " "+at, "", 1)), " ")
				}
				if want == "proc" {
					got, _, _ = strings.Cut(got, " ")
				}
				if got != want {
					t.Errorf("%s: %q; want %q", at, got, want)
				}
			}
			if got := find(table, "/home/u").Hidden; !slices.Equal(got, c.hide) {
				t.Errorf("hidden in HOME: %q; want %q", got, c.hide)
			}
		})
	}
}

// Nothing can be hidden in what is mounted as a whole, and each mount takes a descriptor.
func TestHostViewCannotHide(t *testing.T) {
	m := viewed()
	base, err := rootfs.Host(m.look, options)
	if err != nil {
		t.Fatal(err)
	}
	m.dirs = append(m.dirs, "/usr/lib")
	v := rootfs.HostView{Look: m.look, List: m.list, Hidden: []string{"/usr/lib"}}
	var hide *rootfs.HideError
	if _, _, _, err := v.Tree(base, options); !errors.As(err, &hide) || *hide != (rootfs.HideError{Path: "/usr/lib", In: "/usr"}) {
		t.Error(err)
	}
	v.Hidden = nil
	for i := range 600 {
		at := fmt.Sprint("/mnt/", i)
		m.dirs, v.Mounts = append(m.dirs, at), append(v.Mounts, ext4(at))
	}
	v.Look, v.List = m.look, m.list
	if _, _, _, err := v.Tree(base, options); !errors.Is(err, rootfs.ErrTooManyMounts) {
		t.Error(err)
	}
}

func TestSecrets(t *testing.T) {
	secrets := rootfs.Secrets("/home/u")
	for _, want := range []string{"/home/u/.ssh", "/home/u/.mozilla", "/home/u/.git-credentials", "/var/mail"} {
		if !slices.Contains(secrets, want) {
			t.Errorf("%s is none", want)
		}
	}
	for i, p := range secrets {
		if path.Clean(p) != p || slices.Contains(secrets[:i], p) {
			t.Errorf("%q: unclean, or listed twice", p)
		}
	}
	if all := rootfs.Secrets(""); slices.ContainsFunc(all, func(p string) bool { return strings.Contains(p, "ssh") }) {
		t.Errorf("without a home: %q", all)
	}
}
