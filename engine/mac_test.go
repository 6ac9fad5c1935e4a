package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// macOf is a Mac with these files, which are directories without a dot in their
// names, and of the links those that macOS has.
func macOf(h Host, files ...string) Host {
	h.OS, h.Arch, h.Kernel, h.UID, h.GID = "darwin", "arm64", "24.6.0", 501, 20
	h.Home, h.SandboxExec, h.MemoryBytes = "/Users/u", "/usr/bin/sandbox-exec", int64(16*GiB)
	h.HardLimits = map[string]uint64{"nofile": 1<<63 - 1, "fsize": 1<<63 - 1, "cpu": 1<<63 - 1, "core": 1<<63 - 1}
	h.Lookup = func(path string) (rootfs.Source, error) {
		for _, link := range []string{"/tmp", "/var", "/etc"} {
			if rootfs.Within(link, path) {
				path = "/private" + path
			}
		}
		for i, f := range files {
			if f == path {
				return rootfs.Source{Path: path, Identity: rootfs.Identity{Dev: 1, Ino: uint64(i + 1), Dir: !strings.Contains(filepath.Base(path)[1:], ".")}, UID: 501, GID: 20, Mode: 0o755}, nil
			}
		}
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: fs.ErrNotExist}
	}
	return h
}

func TestPlanOfAMacGolden(t *testing.T) {
	nested := func() error { return errors.New("sandbox-exec in a process that is in a sandbox itself") }
	project := FS{Workspace: "/tmp/proj", Mounts: []Mount{
		{Type: MountBind, Source: "/data", Target: "/data", ReadOnly: true},
		{Type: MountBind, Source: "/private/tmp/proj/vendor", Target: "/private/tmp/proj/vendor", ReadOnly: true},
		{Type: MountBind, Source: "/Users/u/.ssh/known.hosts", Target: "/Users/u/.ssh/known.hosts"},
	}}
	files := []string{"/private/tmp/proj", "/private/tmp/proj/.git", "/private/tmp/proj/.git/config.x", "/private/tmp/proj/vendor", "/data", "/Users/u/.ssh/known.hosts"}
	for _, c := range []struct {
		name string
		host Host
		spec Spec
	}{
		{"zero", Host{}, Spec{}},
		{"workspace", Host{}, Spec{FS: project, Seccomp: Seccomp{NoExec: true}}},
		{"read all", Host{}, Spec{FS: FS{Workspace: "/tmp/proj", AllowWrite: []string{"."}, View: ViewHost}, Degrade: []Protection{ProtectMemory}, Limits: Limits{Memory: GiB, Pids: 7}}},
		{"hidden", Host{}, Spec{FS: FS{Workspace: "/tmp/proj", AllowWrite: []string{"."}, Hidden: []string{"/tmp/proj/.env", "/tmp/proj/vendor"}}}},
		{"none", Host{TrySeatbelt: nested}, Spec{AllowNoIsolation: true, FS: project}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(c.spec, macOf(c.host, files...))
			if err != nil {
				t.Fatal(err)
			}
			testenv.Golden(t, filepath.Join("testdata", "mac", c.name+".txt"), p.String()+"\n"+p.Calls(), *update)
		})
	}
}

// What a Mac cannot do is an error, unless the Spec accepts it, and one that can
// be matched.
func TestMacRefuses(t *testing.T) {
	nested := Host{TrySeatbelt: func() error { return errors.New("nested") }}
	for _, c := range []struct {
		name string
		host Host
		spec Spec
		want string // "": it can be
	}{
		{"memory", Host{}, Spec{Limits: Limits{Memory: GiB}}, "degrade memory"},
		{"memory, accepted", Host{}, Spec{Limits: Limits{Memory: GiB}, Degrade: []Protection{ProtectMemory}}, ""},
		{"address space", Host{}, Spec{Limits: Limits{AddressSpace: GiB}}, "addressspace"},
		{"cpus", Host{}, Spec{Limits: Limits{CPUs: 1}}, "degrade cpus"},
		{"a cgroup", Host{}, Spec{Require: []Requirement{{"pids", "cgroup"}}}, "pids by cgroup"},
		{"a root", Host{}, Spec{FS: FS{Root: "/data"}}, "a root directory"},
		{"an overlay", Host{}, Spec{FS: FS{Workspace: "/data", WorkspaceMode: WorkspaceOverlay}}, "an overlay"},
		{"a mount elsewhere", Host{}, Spec{FS: FS{Mounts: []Mount{{Type: MountBind, Source: "/data", Target: "/x"}}}}, "the mount at /x"},
		{"a tmpfs", Host{}, Spec{FS: FS{Mounts: []Mount{{Type: MountTmpfs, Target: "/x"}}}}, "the mount at /x"},
		{"another user", Host{}, Spec{User: &User{UID: 1}}, "another user"},
		{"a host name", Host{}, Spec{Hostname: "h"}, "a host name"},
		{"a profile", Host{}, Spec{Seccomp: Seccomp{Profile: "strict"}}, "profile"},
		{"an audit", Host{}, Spec{Seccomp: Seccomp{Audit: true}}, "audit"},
		{"writable in what is read-only", Host{}, Spec{FS: FS{Workspace: "/data", Mounts: []Mount{
			{Type: MountBind, Source: "/data/a", Target: "/data/a", ReadOnly: true}, {Type: MountBind, Source: "/data/a/b", Target: "/data/a/b"},
		}}}, "/data/a/b"},
		{"nested, without asking", nested, Spec{}, ""}, // the start says so
		{"nested, accepted", nested, Spec{AllowNoIsolation: true}, ""},
		{"none", Host{}, Spec{AllowNoIsolation: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(c.spec, macOf(c.host, "/data", "/data/a", "/data/a/b"))
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A guest can use up what the probe of a level needs: that is no reason to go
// without the level.
func TestShortageIsNoReason(t *testing.T) {
	for _, short := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, box.ErrShort} {
		try := func() error { return fmt.Errorf("probe: %w", short) }
		linux := machineOf(Host{UID: 1, TryNamespaces: try}, nil)
		for _, c := range []struct {
			host Host
			spec Spec
		}{
			{linux, Spec{AllowNoIsolation: true}},
			{linux, Spec{Degrade: []Protection{ProtectNamespaces}}},
			{macOf(Host{TrySeatbelt: try}), Spec{AllowNoIsolation: true}},
		} {
			if p, err := Compile(c.spec, c.host); !errors.Is(err, short) {
				t.Errorf("%s, %v: %v, %v", c.host.OS, short, p, err)
			}
		}
	}
}

// Nobody can raise a hard limit: not for the second that CPU time has, either.
func TestHardLimitsAreKeptTo(t *testing.T) {
	h := machineOf(Host{UID: 1}, nil)
	h.HardLimits["cpu"] = 100
	p, err := Compile(Spec{}, h)
	if err != nil || !slices.Contains(p.config.Rlimits, ns.Rlimit{Name: "cpu", Soft: 100, Hard: 100}) {
		t.Errorf("%v, %v", p.config.Rlimits, err)
	}
}

// Without the host's view Linux has nothing to hide, and Landlock cannot hide anything in it.
func TestHiddenNeedsAView(t *testing.T) {
	landlock := machineOf(Host{UID: 1, TryNamespaces: func() error { return errors.New("refused") }}, nil)
	for name, c := range map[string]struct {
		host Host
		spec Spec
	}{
		"the system's view": {machineOf(Host{UID: 1}, nil), Spec{FS: FS{Hidden: []string{"/x"}}}},
		"Landlock":          {landlock, Spec{FS: FS{View: ViewHost}, Degrade: []Protection{ProtectNamespaces}}},
	} {
		if _, err := Compile(c.spec, c.host); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever accepts to be without isolation has it where it can be had.
func TestLevels(t *testing.T) {
	no := func() error { return errors.New("refused") }
	linux := func(h Host) Host {
		abi := h.Landlock
		h = machineOf(h, nil)
		h.Landlock = abi
		return h
	}
	other := linux(Host{UID: 1})
	other.OS = "plan9"
	for _, c := range []struct {
		name string
		host Host
		spec Spec
		want Level // "": none that is accepted
	}{
		{"Linux", linux(Host{UID: 1, Landlock: 6}), Spec{AllowNoIsolation: true}, LevelNamespaces},
		{"refused", linux(Host{UID: 1, Landlock: 6, TryNamespaces: no}), Spec{AllowNoIsolation: true}, LevelLandlock},
		{"refused, not accepted", linux(Host{UID: 1, Landlock: 6, TryNamespaces: no}), Spec{}, LevelNamespaces}, // which then fails to start
		{"old", linux(Host{UID: 1, Landlock: 5, TryNamespaces: no}), Spec{AllowNoIsolation: true}, LevelNone},
		{"old, only without namespaces", linux(Host{UID: 1, Landlock: 5, TryNamespaces: no}), Spec{Degrade: []Protection{ProtectNamespaces}}, ""},
		{"macOS", macOf(Host{}), Spec{AllowNoIsolation: true}, LevelSeatbelt},
		{"macOS, nested", macOf(Host{TrySeatbelt: no}), Spec{AllowNoIsolation: true}, LevelNone},
		{"other", other, Spec{}, ""},
		{"other, accepted", other, Spec{AllowNoIsolation: true}, LevelNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(c.spec, c.host)
			switch {
			case c.want == "":
				if !errors.Is(err, ErrUnsupported) {
					t.Errorf("got %v", err)
				}
				return
			case err != nil || p.Level != c.want:
				t.Fatalf("got %+v, %v", p, err)
			}
			lost := false
			for _, d := range p.Dropped {
				lost = lost || d.Protection == ProtectIsolation
			}
			if lost != (c.want == LevelNone) {
				t.Errorf("dropped %v", p.Dropped)
			}
		})
	}
}
