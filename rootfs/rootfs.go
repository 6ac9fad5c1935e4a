// Package rootfs describes the mount table of a sandbox as data: the file, directory
// or file system at each path. [Host] returns the table for a view of the host's
// system directories, [Directory] the table for a directory that holds a root file
// system. The package is portable, reads the host only through the Lookup that it is
// given, and mounts nothing.
package rootfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Lookup finds a file or directory of the host, following symbolic links. If there is
// none, its error is an fs.ErrNotExist.
type Lookup func(path string) (Source, error)

// Options are the parameters of a file tree.
type Options struct {
	UID, GID  int      // of the sandbox's user, for passwd and group; 0 is root inside
	Hostname  string   // for hosts
	Home      string   // of the sandbox's user, for passwd; "" is /tmp
	Proc      []string // those of ProcEntries that the host has
	TmpBytes  int64    // size of each writable tmpfs and overlay; 0 is no limit
	TmpInodes int64    // number of files in each; 0 is no limit
	Git       string   // added to /etc/gitconfig
	Limits    *Limits  // shown in /sys/fs/cgroup; nil shows nothing
	// List lists the names in a directory of the host. nil lists nothing: then /etc
	// has only what is the same on all hosts.
	List func(dir string) ([]string, error)
	// Read reads a file of the host, as far as a page; nil reads nothing. What is
	// shorter in /etc is copied, which is faster than a mount for a page and slower for
	// more.
	Read func(path string) ([]byte, error)
}

// page is the most that Options.Read returns.
const page = 4096

// Workspace is the private directory that commands start in by default.
const Workspace = "/workspace"

// systemDirs are the read-only view of the host. /home, /root, /var, /opt, /run and
// /srv are not among them: credentials, sockets of daemons and other people's data
// live there.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// Host returns the default tree: the host's system directories, read-only, and an
// /etc that reveals nothing of the host's users, names or network. It returns the
// error of look, unless that is an fs.ErrNotExist for a directory of the host.
func Host(look Lookup, o Options) (Table, error) {
	t := Table{{Path: "/", Kind: Static, Mode: 0o755}}
	for _, dir := range slices.Concat(systemDirs, o.etcOfHost(), otherDirs) {
		src, err := look(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if src.Path != dir && Within("/usr", src.Path) && dir != "/usr" {
			t = t.Add(Node{Path: dir, Kind: Symlink, Data: src.Path})
			continue
		}
		if text, ok := o.short(dir, src); ok {
			t = t.Add(Node{Path: dir, Kind: File, Mode: 0o644, Data: text})
			continue
		}
		t = t.Add(Node{Path: dir, Kind: Bind, Source: src, ReadOnly: true})
	}
	for _, f := range o.etc() {
		t = t.Add(Node{Path: "/etc/" + f.name, Kind: File, Mode: 0o644, Data: f.data})
	}
	t = o.addGit(t)
	for _, l := range tmpLinks {
		t = t.Add(Node{Path: l.name, Kind: Symlink, Data: l.data})
	}
	t = t.Add(Node{Path: "/dev", Kind: Dir, Mode: 0o755})
	return o.common(t, look)
}

// addGit adds to /etc/gitconfig, unless that is so long that it is the host's own.
func (o Options) addGit(t Table) Table {
	const at = "/etc/gitconfig"
	if o.Git == "" {
		return t
	}
	i := slices.IndexFunc(t, func(n Node) bool { return n.Path == at })
	switch {
	case i < 0:
		return t.Add(Node{Path: at, Kind: File, Mode: 0o644, Data: o.Git})
	case t[i].Kind == File:
		t[i].Data = strings.TrimRight(t[i].Data, "\n") + "\n" + o.Git
	}
	return t
}

// short is the content of a short text in /etc.
func (o Options) short(at string, src Source) (string, bool) {
	if o.Read == nil || src.Dir || src.Mode&0o004 == 0 || !Within("/etc", at) {
		return "", false
	}
	text, err := o.Read(src.Path)
	return string(text), err == nil && len(text) < page
}

// otherDirs are what programs look at besides: the CPUs there are, and what TeX has
// compiled.
var otherDirs = []string{"/sys/devices/system/cpu", "/var/lib/texmf"}

// tmpLinks are directories for what programs leave there while they run.
var tmpLinks = []entry{{"/var/tmp", "/tmp"}, {"/run", "/tmp"}, {"/var/run", "/tmp"}}

// Directory returns a tree whose root is a directory of the host, read-only or under
// an overlay that is lost with the sandbox. /proc, /dev and /tmp are the sandbox's
// own. Without an overlay dir must contain these three directories; nothing is made
// in it.
func Directory(look Lookup, dir string, overlay bool, o Options) (Table, error) {
	src, err := look(dir)
	if err != nil {
		return nil, err
	}
	if !src.Dir {
		return nil, rootError(dir, "not a directory")
	}
	root := Node{Path: "/", Kind: Bind, Source: src, ReadOnly: true}
	if overlay {
		root = Node{Path: "/", Kind: Overlay, Source: src, Size: o.TmpBytes, Inodes: o.TmpInodes}
	}
	for _, name := range []string{"/proc", "/dev", "/tmp", Workspace} {
		at := path.Join(src.Path, name)
		switch point, err := look(at); {
		case errors.Is(err, fs.ErrNotExist) && (overlay || name == Workspace):
		case errors.Is(err, fs.ErrNotExist):
			return nil, rootError(dir, "has no directory %s: create it, or use an overlay", name)
		case err != nil:
			return nil, err
		case point.Path != at || !point.Dir:
			// CVE-2019-19921, CVE-2026-41579: a link there would redirect a mount.
			return nil, rootError(dir, "%s is not a directory", name)
		}
	}
	t := Table{root}.Add(Node{Path: "/dev", Kind: Static, Mode: 0o755})
	return o.common(t, look)
}

// rootError is a root directory that will not do.
func rootError(dir, format string, args ...any) error {
	return &fs.PathError{Op: "root", Path: dir, Err: fmt.Errorf(format, args...)}
}

// common adds the nodes of every tree. A read-only root that has no /workspace gets
// none.
func (o Options) common(t Table, look Lookup) (Table, error) {
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		src, err := look("/dev/" + name)
		if err != nil {
			return nil, err
		}
		t = t.Add(Node{Path: "/dev/" + name, Kind: Device, Source: src})
	}
	for _, l := range devLinks {
		t = t.Add(Node{Path: "/dev/" + l.name, Kind: Symlink, Data: l.data})
	}
	proc := Node{Path: "/proc", Kind: Proc}
	proc.Masked, proc.Locked = hide(o.Proc)
	t = t.Add(proc)
	t = t.Add(Node{Path: "/dev/pts", Kind: Devpts})
	t = t.Add(o.tmpfs("/dev/shm", 0o1777, true))
	t = t.Add(o.tmpfs("/tmp", 0o1777, false))
	t = o.addLimits(t, look)
	if root := t[0]; root.Kind == Bind {
		if _, err := look(path.Join(root.Source.Path, Workspace)); errors.Is(err, fs.ErrNotExist) {
			return t, nil
		}
	}
	return t.Add(o.tmpfs(Workspace, 0o755, false)), nil
}

// devLinks are the symbolic links of /dev.
var devLinks = []entry{
	{"fd", "/proc/self/fd"},
	{"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"},
	{"stderr", "/proc/self/fd/2"},
	{"ptmx", "pts/ptmx"},
}

func (o Options) tmpfs(at string, mode uint32, noexec bool) Node {
	return Node{Path: at, Kind: Tmpfs, Mode: mode, NoExec: noexec, Size: o.TmpBytes, Inodes: o.TmpInodes}
}

// entry is a name and its content or target.
type entry struct{ name, data string }

// etc generates the files of /etc: they name the sandbox's user and nobody else.
func (o Options) etc() []entry {
	uid, gid := strconv.Itoa(o.UID), strconv.Itoa(o.GID)
	passwd, group := "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n", "root:x:0:\n"
	if o.UID == 0 {
		passwd = ""
	}
	if o.GID == 0 {
		group = ""
	}
	user := "user"
	if o.UID == 0 {
		user = "root"
	}
	if o.UID != 65534 {
		passwd += user + ":x:" + uid + ":" + gid + ":" + user + ":" + cmp.Or(o.Home, "/tmp") + ":/bin/sh\n"
	}
	if o.GID != 65534 {
		group += user + ":x:" + gid + ":\n"
	}
	return []entry{
		{"passwd", passwd + "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
		{"group", group + "nogroup:x:65534:\n"},
		{"hosts", "127.0.0.1 localhost\n127.0.1.1 " + o.Hostname + "\n::1 localhost\n"},
		{"resolv.conf", "# no network\n"},
		{"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
	}
}

// runc's default lists of /proc. The masked entries reveal the whole machine or the
// kernel's internals; the locked ones, which are read-only, control them.
var (
	masked = []string{
		"acpi/", "asound/", "interrupts", "kcore", "keys", "latency_stats", "sched_debug", "scsi/",
		"timer_list", "timer_stats",
	}
	locked = []string{"bus", "fs", "irq", "sys", "sysrq-trigger"}
)

// ProcEntries lists the names in /proc that a tree hides or locks. A caller looks up
// which of them the host has, for Options.Proc.
func ProcEntries() []string {
	var names []string
	for _, n := range append(slices.Clone(masked), locked...) {
		names = append(names, strings.TrimSuffix(n, "/"))
	}
	return names
}

// hide returns the masked and the locked entries among those that a host has.
func hide(have []string) (mask, lock []string) {
	in := func(name string) bool { return slices.Contains(have, strings.TrimSuffix(name, "/")) }
	for _, m := range masked {
		if in(m) {
			mask = append(mask, m)
		}
	}
	for _, l := range locked {
		if in(l) {
			lock = append(lock, l)
		}
	}
	return mask, lock
}
