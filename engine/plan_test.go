package engine

import (
	"errors"
	"flag"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/rootfs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// machineOf is a Host with a small file tree: paths to what they resolve to.
func machineOf(h Host, files map[string]string) Host {
	h.OS, h.Arch, h.Kernel, h.Seccomp, h.Landlock = "linux", "amd64", "6.12.0", true, 6
	h.Proc = []string{"bus", "cpuinfo", "fs", "irq", "kcore", "keys", "scsi", "sys", "sysrq-trigger", "timer_list"}
	h.HardLimits = map[string]uint64{"nofile": 20000, "nproc": 1 << 62, "fsize": 1 << 63, "cpu": 1 << 63, "as": 1 << 63}
	all := map[string]string{
		"/usr": "/usr", "/bin": "/usr/bin", "/sbin": "/usr/sbin", "/lib": "/usr/lib", "/lib64": "/usr/lib64",
		"/etc/ld.so.cache": "/etc/ld.so.cache", "/etc/localtime": "/usr/share/zoneinfo/Etc/UTC", "/etc/ssl/certs": "/etc/ssl/certs",
		"/dev/null": "/dev/null", "/dev/zero": "/dev/zero", "/dev/full": "/dev/full",
		"/dev/random": "/dev/random", "/dev/urandom": "/dev/urandom", "/dev/tty": "/dev/tty",
	}
	for k, v := range files {
		all[k] = v
	}
	h.Lookup = func(path string) (rootfs.Source, error) {
		to, ok := all[path]
		if !ok {
			return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: fs.ErrNotExist}
		}
		dir := !strings.Contains(filepath.Base(to), ".") && !strings.HasPrefix(to, "/dev/")
		src := rootfs.Source{Path: to, Identity: rootfs.Identity{Dev: 1, Ino: uint64(len(to)), Dir: dir}, UID: 501, GID: 502, Mode: 0o755}
		if path == "/rooted" {
			src.UID, src.GID = 0, 0
		}
		return src, nil
	}
	return h
}

func TestPlanGolden(t *testing.T) {
	home := map[string]string{"/home/u/proj": "/home/u/proj", "/link": "/home/u/proj", "/data": "/data", "/img": "/img", "/img/proc": "/img/proc", "/img/dev": "/img/dev", "/img/tmp": "/img/tmp"}
	user, root := Host{UID: 1234, GID: 1235}, Host{Become: true, Mount: true}
	delegated := Host{
		UID: 1234, Cgroup: cgroup.Place{Dir: "/c", Controllers: []string{"cpu", "cpuset", "io", "memory", "pids"}},
		Device: func(string) (string, error) { return "8:0", nil },
	}
	for _, c := range []struct {
		name string
		host Host
		spec Spec
	}{
		{"zero", user, Spec{}},
		{"root", root, Spec{}},
		{"workspace", root, Spec{FS: FS{Workspace: "/link"}}},
		{"mounts", user, Spec{
			Hostname: "h", User: &User{}, Env: []string{"PATH=/x", "A=b"}, Keep: true, Degrade: []Protection{ProtectMemory},
			Limits: Limits{Wall: time.Second, Memory: 64 * MiB, Files: 100, Pids: UnlimitedCount, Tmp: UnlimitedBytes},
			FS: FS{Mounts: []Mount{
				{Type: MountBind, Source: "/data", Target: "/etc", ReadOnly: true},
				{Type: MountBind, Source: "/data", Target: "/tmp/a/b"},
				{Type: MountTmpfs, Target: "/workspace", Size: MiB, Mode: 0o700},
			}},
		}},
		{"directory", user, Spec{FS: FS{Root: "/img"}}},
		{"overlay", user, Spec{FS: FS{Root: "/img", Overlay: true}}},
		{"cgroup", delegated, Spec{
			Limits: Limits{
				Memory: 64 * MiB, MemoryHigh: 48 * MiB, CPUs: 1.5, CPUWeight: 50, CPUSet: "0-2", Pids: 10,
				IO: []IOLimit{{Device: "/dev/sda", ReadBPS: MiB, WriteIOPS: 100}},
			},
			Require: []Requirement{{"memory", "cgroup"}, {"pids", "cgroup"}, {"cputime", "rlimit"}, {"cputime", "cgroup"}},
		}},
		{"host view", viewedHost(home), Spec{FS: FS{
			View: ViewHost, Workspace: "/home/u/proj", AllowWrite: []string{"."}, Hidden: []string{"/data/token"},
		}}},
		{"half delegated", Host{UID: 1234, Cgroup: cgroup.Place{Dir: "/c", Controllers: []string{"memory", "pids"}}, MemoryBytes: int64(3*GiB) + 1}, Spec{
			Limits: Limits{CPUs: 2}, Degrade: []Protection{ProtectCPUs},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.host
			if h.Lookup == nil {
				h = machineOf(h, home)
			}
			p, err := Compile(c.spec, h)
			if err != nil {
				t.Fatal(err)
			}
			testenv.Golden(t, filepath.Join("testdata", "plan", c.name+".txt"), p.String(), *update)
		})
	}
}

// viewedHost is a user's machine with a home directory and two file systems. It adds to
// files.
func viewedHost(files map[string]string) Host {
	for _, p := range []string{"/", "/home", "/home/u", "/home/u/.ssh", "/home/u/.config", "/var", "/opt"} {
		files[p] = p
	}
	h := machineOf(Host{UID: 501, GID: 502, Home: "/home/u", Path: "/home/u/bin:/tmp/bin:bin:/usr/bin"}, files)
	h.ReadDir = func(dir string) (names []string, err error) {
		for p := range files {
			if p != "/" && filepath.Dir(p) == dir {
				names = append(names, filepath.Base(p))
			}
		}
		slices.Sort(names)
		return names, nil
	}
	h.Mounts = func() ([]rootfs.HostMount, error) {
		return []rootfs.HostMount{{Path: "/", Root: "/", Type: "ext4", Dev: "8:1"}, {Path: "/opt", Root: "/", Type: "fuse.sshfs", Dev: "0:9"}}, nil
	}
	return h
}

func TestCompileDoesNotShareTheSpec(t *testing.T) {
	s := Spec{Env: []string{"A=1"}, User: &User{UID: 5, GID: 6}}
	p, err := Compile(s, machineOf(Host{UID: 1}, nil))
	if err != nil {
		t.Fatal(err)
	}
	before := p.String()
	s.Env[0], s.User.UID = "A=2", 7
	if p.String() != before || p.Spec.Env[0] != "A=1" || p.Spec.User.UID != 5 {
		t.Error("changing the Spec changed the Plan")
	}
}

func TestCompileRefuses(t *testing.T) {
	files := map[string]string{"/evil": "/", "/file": "/file.txt", "/bad": "/bad", "/bad/proc": "/etc", "/bad/dev": "/bad/dev", "/bad/tmp": "/bad/tmp", "/bare": "/bare"}
	bind := func(src, dst string) Spec {
		return Spec{FS: FS{Mounts: []Mount{{Type: MountBind, Source: src, Target: dst}}}}
	}
	for _, c := range []struct {
		name string
		spec Spec
		is   error
		says string
	}{
		{"root bound", bind("/", "/x"), ErrInvalid, "the whole host"},
		{"root by another name", bind("/.//", "/x"), ErrInvalid, "the whole host"},
		{"link to root", bind("/evil", "/x"), ErrInvalid, "the whole host"},
		{"relative source", bind("x", "/x"), ErrInvalid, "does not exist"},
		{"missing source", bind("/nope", "/x"), ErrInvalid, "/nope"},
		{"relative target", bind("/usr", "x"), ErrInvalid, "not an absolute path"},
		{"target root", bind("/usr", "/"), ErrInvalid, "root"},
		{"target proc", bind("/usr", "/proc/sys"), ErrInvalid, "is reserved for the sandbox"},
		{"target dev", bind("/usr", "/dev"), ErrInvalid, "is reserved for the sandbox"},
		{"unknown type", Spec{FS: FS{Mounts: []Mount{{Type: "nfs", Target: "/x"}}}}, ErrInvalid, "neither bind nor tmpfs"},
		{"same target twice", Spec{FS: FS{Mounts: []Mount{{Type: MountTmpfs, Target: "/x"}, {Type: MountTmpfs, Target: "/x/"}}}}, ErrInvalid, "listed twice"},
		{"tmpfs with source", Spec{FS: FS{Mounts: []Mount{{Type: MountTmpfs, Source: "/usr", Target: "/x"}}}}, ErrInvalid, "no source"},
		{"overlay of the host", Spec{FS: FS{Overlay: true}}, ErrInvalid, "without a root"},
		{"missing workspace", Spec{FS: FS{Workspace: "/nope"}}, ErrInvalid, "/nope"},
		{"workspace is a file", Spec{FS: FS{Workspace: "/file"}}, ErrInvalid, "not a directory"},
		{"workspace is the system", Spec{FS: FS{Workspace: "/usr"}}, ErrInvalid, "is a system directory"},
		{"image with a link for /proc", Spec{FS: FS{Root: "/bad"}}, ErrInvalid, "/proc is not a directory"},
		{"image without /proc", Spec{FS: FS{Root: "/bare"}}, ErrInvalid, "has no directory /proc"},
		{"negative limit", Spec{Limits: Limits{Pids: -1}}, ErrInvalid, "pids"},
		{"too few files", Spec{Limits: Limits{Files: 2}}, ErrInvalid, "too few"},
		{"above the hard limit", Spec{Limits: Limits{Files: 50000}}, ErrInvalid, "hard limit of 20000"},
		{"environment", Spec{Env: []string{"novalue"}}, ErrInvalid, "NAME=value"},
		{"NUL", Spec{Env: []string{"A=\x00"}}, ErrInvalid, "NUL"},
		{"hostname", Spec{Hostname: "a b"}, ErrInvalid, "hostname"},
		{"user", Spec{User: &User{UID: -1}}, ErrInvalid, "ids are from 0"},
		{"degrade", Spec{Degrade: []Protection{"everything"}}, ErrInvalid, "everything"},
		{"memory high", Spec{Limits: Limits{MemoryHigh: MiB}}, ErrUnsupported, "degrade memory"},
		{"cpus", Spec{Limits: Limits{CPUs: 1.5}}, ErrUnsupported, "cpus=1.5"},
		{"too few cpus", Spec{Limits: Limits{CPUs: 0.001}}, ErrInvalid, "at least 0.01"},
		{"cpu weight", Spec{Limits: Limits{CPUWeight: 10001}}, ErrInvalid, "from 1 to 10000"},
		{"cpu set", Spec{Limits: Limits{CPUSet: "all"}}, ErrInvalid, "0-2,5"},
		{"require", Spec{Require: []Requirement{{"memory", "cgroup"}}}, ErrUnsupported, "memory by cgroup, which is required: not supported here; this system has none"},
		{"require what there is not", Spec{Require: []Requirement{{"memory", "magic"}, {"love", "cgroup"}}}, ErrInvalid, "the limits are"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(c.spec, machineOf(Host{UID: 1}, files))
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, %v; want %v that says %q", p, err, c.is, c.says)
			}
		})
	}
}

func TestRootThatCannotBecomeAnyone(t *testing.T) {
	if _, err := Compile(Spec{}, machineOf(Host{}, nil)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported: a guest is never host root", err)
	}
	if _, err := Compile(Spec{}, machineOf(Host{Contained: true}, nil)); err != nil {
		t.Errorf("got %v: uid 0 of a user namespace is not host root", err)
	}
}

func TestWorkspaceOfRoot(t *testing.T) {
	s := Spec{FS: FS{Workspace: "/rooted"}}
	files := map[string]string{"/rooted": "/rooted"}
	p, err := Compile(s, machineOf(Host{Become: true}, files))
	if err != nil || !strings.Contains(p.String(), "(rw, root's files are the guest's)") || !p.config.NoSetID {
		t.Errorf("%v, %v", p, err)
	}
	cannot := func(string) error { return syscall.EINVAL }
	if _, err := Compile(s, machineOf(Host{Become: true, TryIDMap: cannot}, files)); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "use a directory of another user") {
		t.Errorf("without idmapped mounts: %v", err)
	}
	s.Seccomp.Profile = SeccompOff
	if _, err := Compile(s, machineOf(Host{Become: true}, files)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "set-user-ID") {
		t.Errorf("without a filter: %v", err)
	}
	bind := Spec{FS: FS{Mounts: []Mount{{Source: "/rooted", Target: "/x"}, {Source: "/rooted", Target: "/y", ReadOnly: true}}}}
	p, err = Compile(bind, machineOf(Host{Become: true}, files))
	if err != nil || strings.Contains(p.String(), "the guest's") {
		t.Errorf("a directory of the system's: %v, %v", p, err)
	}
}

func TestValidateReportsEverything(t *testing.T) {
	err := Spec{Hostname: "?", Limits: Limits{Pids: -1, Tmp: -1}, Env: []string{"x"}}.Validate()
	for _, want := range []string{"hostname", "pids", "tmp", "environment"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not mention %s", err, want)
		}
	}
}

func TestMergeEnv(t *testing.T) {
	got := strings.Join(mergeEnv([]string{"A=1", "B=2"}, []string{"B=3", "C=4", "C=5"}), " ")
	if want := "A=1 B=3 C=5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
