package rootfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// A machine is a made-up host: the directories and files that exist, and links.
type machine struct {
	dirs, files []string
	links       map[string]string // to the resolved target
	broken      map[string]error  // by path: any other error
}

func (m machine) look(path string) (rootfs.Source, error) {
	if err := m.broken[path]; err != nil {
		return rootfs.Source{}, err
	}
	if target, ok := m.links[path]; ok {
		path = target
	}
	dir := slices.Contains(m.dirs, path)
	if !dir && !slices.Contains(m.files, path) {
		return rootfs.Source{}, fmt.Errorf("look up %q: %w", path, fs.ErrNotExist)
	}
	return rootfs.Source{Path: path, Identity: rootfs.Identity{Dev: 1, Ino: 1, Dir: dir}}, nil
}

// host is a machine with these directories and the devices.
func host(dirs ...string) machine { return machine{dirs: dirs, files: devices} }

// link adds a link, or a directory that is found through one.
func (m machine) link(path, target string) machine {
	links := map[string]string{path: target}
	maps.Copy(links, m.links)
	m.links = links
	return m
}

func (m machine) file(path string) machine {
	m.files = append(slices.Clone(m.files), path)
	return m
}

func (m machine) fails(path string, err error) machine {
	m.broken = map[string]error{path: err}
	return m
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

var options = rootfs.Options{UID: 1000, GID: 1000, Hostname: "box", TmpBytes: 1 << 20, TmpInodes: 100}

// find returns the node at a path, or a node without a kind.
func find(t rootfs.Table, path string) rootfs.Node {
	for _, n := range t {
		if n.Path == path {
			return n
		}
	}
	return rootfs.Node{}
}

// checkNode compares what a table has at path with want; "" is nothing.
func checkNode(t *testing.T, table rootfs.Table, path, want string) {
	t.Helper()
	n := find(table, path)
	if want == "" {
		if n.Path != "" {
			t.Errorf("got %s, want nothing", n)
		}
	} else if got := n.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestHost(t *testing.T) {
	merged := host("/usr", "/usr/bin", "/usr/lib", "/etc/ssl/certs").file("/etc/localtime").
		link("/bin", "/usr/bin").link("/lib", "/usr/lib")
	separate := host("/usr", "/bin", "/data/sbin").link("/sbin", "/data/sbin")
	for _, c := range []struct {
		name string
		host machine
		path string
		want string // "" if there is none
	}{
		{"the root is filled from the table", merged, "/", "static   /"},
		{"a directory is bound read-only", merged, "/usr", "bind     /usr from /usr (ro)"},
		{"a link into /usr stays a link", merged, "/bin", "symlink  /bin -> /usr/bin"},
		{"a directory that is no link is bound", separate, "/bin", "bind     /bin from /bin (ro)"},
		{"a link out of /usr is bound", separate, "/sbin", "bind     /sbin from /data/sbin (ro)"},
		{"a missing directory is left out", merged, "/sbin", ""},
		{"a file of /etc", merged, "/etc/localtime", "bind     /etc/localtime from /etc/localtime (ro)"},
		{"a directory in /etc/ssl", merged, "/etc/ssl/certs", "bind     /etc/ssl/certs from /etc/ssl/certs (ro)"},
		{"the rest of /etc/ssl is not the host's", merged, "/etc/ssl", "dir      /etc/ssl"},
		{"/home is not there", merged, "/home", ""},
		{"/etc/hosts is generated", merged, "/etc/hosts", "file     /etc/hosts (48 bytes)"},
		{"a device", merged, "/dev/null", "device   /dev/null from /dev/null"},
		{"a link of /dev", merged, "/dev/fd", "symlink  /dev/fd -> /proc/self/fd"},
		{"/proc hides nothing that the host lacks", merged, "/proc", "proc     /proc (0 masked, 0 read-only)"},
		{"/tmp", merged, "/tmp", "tmpfs    /tmp (1048576 bytes, 100 inodes, mode 1777)"},
		{"/workspace", merged, rootfs.Workspace, "tmpfs    /workspace (1048576 bytes, 100 inodes, mode 755)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := rootfs.Host(c.host.look, options)
			if err != nil {
				t.Fatal(err)
			}
			checkNode(t, table, c.path, c.want)
		})
	}
}

// Every node of a table comes after the mount that it stands upon and its parent.
func TestHostTableIsOrdered(t *testing.T) {
	m := host("/usr", "/usr/bin", "/etc/ssl/certs").link("/bin", "/usr/bin")
	table, err := rootfs.Host(m.look, options)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range table {
		if n.Path == "/" {
			continue
		}
		parent := n.Path[:max(1, strings.LastIndex(n.Path, "/"))]
		if !table[:i].Has(parent) {
			t.Errorf("%s comes before %s", n.Path, parent)
		}
	}
}

func TestHostErrors(t *testing.T) {
	errIO := errors.New("I/O error")
	for _, c := range []struct {
		name string
		host machine
		want error
	}{
		{"a system directory that cannot be read", host("/usr").fails("/lib", errIO), errIO},
		{"a device that is missing", machine{dirs: []string{"/usr"}, files: devices[1:]}, fs.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			if table, err := rootfs.Host(c.host.look, options); !errors.Is(err, c.want) || table != nil {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestProcEntriesTheHostHas(t *testing.T) {
	m := host("/usr")
	o := options
	o.Proc = []string{"kcore", "scsi", "sys", "unknown"}
	table, err := rootfs.Host(m.look, o)
	if err != nil {
		t.Fatal(err)
	}
	n := find(table, "/proc")
	if !slices.Equal(n.Masked, []string{"kcore", "scsi/"}) || !slices.Equal(n.Locked, []string{"sys"}) {
		t.Errorf("masked %v, locked %v", n.Masked, n.Locked)
	}
	for _, name := range rootfs.ProcEntries() {
		if strings.HasSuffix(name, "/") {
			t.Errorf("%s: a name with a slash is never found in a listing of /proc", name)
		}
	}
}

// The user database names the sandbox's user, and root and nobody unless they are it.
func TestUsers(t *testing.T) {
	m := host("/usr")
	for _, c := range []struct {
		uid, gid      int
		passwd, group string // the names, in order
	}{
		{1000, 1000, "root user nobody", "root user nogroup"},
		{0, 0, "root nobody", "root nogroup"},
		{65534, 65534, "root nobody", "root nogroup"},
	} {
		o := options
		o.UID, o.GID = c.uid, c.gid
		table, err := rootfs.Host(m.look, o)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"/etc/passwd": c.passwd, "/etc/group": c.group} {
			var names []string
			for line := range strings.Lines(find(table, path).Data) {
				name, _, _ := strings.Cut(line, ":")
				names = append(names, name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("uid %d: %s has %s, want %s", c.uid, path, got, want)
			}
		}
	}
}

func TestDirectory(t *testing.T) {
	full := host("/img", "/img/proc", "/img/dev", "/img/tmp", "/img/workspace")
	without := host("/img", "/img/proc", "/img/dev", "/img/tmp")
	empty := host("/img")
	const workspace = "tmpfs    /workspace (1048576 bytes, 100 inodes, mode 755)"
	for _, c := range []struct {
		name    string
		host    machine
		overlay bool
		path    string
		want    string // "" if there is none
	}{
		{"the root is read-only", full, false, "/", "bind     / from /img (ro)"},
		{"the root is under an overlay", empty, true, "/", "overlay  / over /img (1048576 bytes, 100 inodes)"},
		{"/dev is the sandbox's", full, false, "/dev", "static   /dev"},
		{"/dev is made in an overlay", empty, true, "/dev", "static   /dev"},
		{"/etc is the image's", full, false, "/etc/passwd", ""},
		{"/workspace of the image", full, false, rootfs.Workspace, workspace},
		{"no /workspace in a read-only image", without, false, rootfs.Workspace, ""},
		{"/workspace is made in an overlay", empty, true, rootfs.Workspace, workspace},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := rootfs.Directory(c.host.look, "/img", c.overlay, options)
			if err != nil {
				t.Fatal(err)
			}
			checkNode(t, table, c.path, c.want)
		})
	}
}

// Directory refuses an image in which a mount point is missing, or leads elsewhere.
func TestDirectoryRefuses(t *testing.T) {
	errIO := errors.New("I/O error")
	points := host("/img", "/img/proc", "/img/dev", "/img/tmp", "/elsewhere")
	for _, c := range []struct {
		name    string
		host    machine
		overlay bool
		says    string
		is      error // nil: any
	}{
		{"no such directory", host(), false, "/img", fs.ErrNotExist},
		{"a file", host().file("/img"), false, "root /img: not a directory", nil},
		{"no /proc without an overlay", host("/img"), false, "no directory /proc", nil},
		{"/tmp is a file", host("/img", "/img/proc", "/img/dev").file("/img/tmp"), false, "/tmp is not a directory", nil},
		{"/proc is a link", points.link("/img/proc", "/elsewhere"), false, "/proc is not a directory", nil},
		{"/dev is a link under an overlay", points.link("/img/dev", "/elsewhere"), true, "/dev is not a directory", nil},
		{"/workspace is a link", points.link("/img/workspace", "/img/tmp"), false, "/workspace is not a directory", nil},
		{"/tmp cannot be read", points.fails("/img/tmp", errIO), true, "", errIO},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := rootfs.Directory(c.host.look, "/img", c.overlay, options)
			if err == nil || table != nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want an error with %q that is %v", err, c.says, c.is)
			}
		})
	}
}
