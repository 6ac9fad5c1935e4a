package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// A Host without what it needs is refused, whatever is asked of it, and no function
// that it lacks is called.
func TestHostMadeByHand(t *testing.T) {
	specs := map[string]engine.Spec{
		"zero":        {},
		"a root":      {FS: engine.FS{Root: "/img", Overlay: true}},
		"a workspace": {FS: engine.FS{Workspace: "/w", AllowWrite: []string{".git"}}},
		"an overlay":  {FS: engine.FS{Workspace: "/w", WorkspaceMode: engine.WorkspaceOverlay, Upper: "/u"}},
		"a mount":     {FS: engine.FS{Mounts: []engine.Mount{{Source: "/data", Target: "/data"}}}},
		"a device":    {Limits: engine.Limits{IO: []engine.IOLimit{{Device: "/dev/sda", ReadBPS: 1}}}},
		"limits":      {Limits: engine.Limits{Memory: engine.GiB, CPUs: 1, Pids: 1, Files: 4, CPUTime: 1}},
		"less":        {AllowNoIsolation: true, Degrade: engine.Protections()},
		"hidden":      {FS: engine.FS{View: engine.ViewHost}},
		"no exec":     {Seccomp: engine.Seccomp{NoExec: true, Audit: true}},
	}
	for name, s := range specs {
		if _, err := engine.Compile(s, engine.Host{}); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s on a zero Host: %v", name, err)
		}
		for _, os := range []string{"linux", "darwin", "plan9"} {
			for _, h := range []engine.Host{
				{OS: os, Arch: "amd64"},
				{OS: os, Arch: "mips", UID: 1, Kernel: "odd"},
				{OS: os, Arch: "arm64", Kernel: "6.12", UID: 1, Become: true, Contained: true, Mount: true,
					Seccomp: true, Landlock: 6, SandboxExec: "/x",
					Cgroup: cgroup.Place{Dir: "/c", Controllers: []string{"cpu", "io", "memory", "pids"}}},
			} {
				p, err := engine.Compile(s, h)
				if (p == nil) == (err == nil) {
					t.Errorf("%s on %+v: plan %v, %v", name, h, p, err)
				}
				if p != nil && (p.String() == "" || p.Level == "") {
					t.Errorf("%s on %+v: an empty plan", name, h)
				}
			}
		}
	}
	if _, err := engine.Open(engine.Options{Host: new(engine.Host)}); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("an engine for a zero Host: %v", err)
	}
}

// linuxHost is a made-up machine, in which every path exists.
func linuxHost(change func(*engine.Host)) engine.Host {
	h := engine.Host{OS: "linux", Arch: "arm64", Kernel: "6.12.0", UID: 1000, GID: 1000, Seccomp: true, Landlock: 6,
		HardLimits: map[string]uint64{"nofile": 1 << 20, "nproc": 1 << 20, "fsize": 1 << 60, "cpu": 1 << 60, "as": 1 << 60},
		Lookup: func(path string) (rootfs.Source, error) {
			if strings.Contains(path, "/.") || strings.HasSuffix(path, "/refs") || strings.HasSuffix(path, "/commondir") {
				return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: fs.ErrNotExist}
			}
			id := rootfs.Identity{Dev: 1, Ino: uint64(len(path)), Dir: true}
			return rootfs.Source{Path: path, Identity: id, UID: 1000, Mode: 0o755}, nil
		},
	}
	if change != nil {
		change(&h)
	}
	return h
}

// Landlock is decided from the Host alone, so that a plan for Linux is the same
// on every system that compiles it.
func TestLandlockDoesNotDependOnTheBuild(t *testing.T) {
	noNamespaces := func() error { return errors.New("refused") }
	for _, c := range []struct {
		version int
		try     func() error
		want    string
	}{
		{0, nil, "landlock none: this kernel has none or has it disabled (first kernel 5.13)"},
		{1, nil, "landlock none: with this kernel's, files could not be moved between directories (first kernel 5.19)"},
		{2, nil, "landlock version 2: files as mounted; it lacks "},
		{6, nil, "landlock version 6: files as mounted"},
		{6, noNamespaces, "landlock version 6: instead of namespaces"},
	} {
		t.Run(fmt.Sprint(c.version, c.try != nil), func(t *testing.T) {
			h := linuxHost(func(h *engine.Host) { h.Landlock, h.TryNamespaces = c.version, c.try })
			p, err := engine.Compile(engine.Spec{Degrade: []engine.Protection{engine.ProtectNamespaces}}, h)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(p.String()), " ")
			if !strings.Contains(text, c.want) {
				t.Errorf("no %q in\n%s", c.want, p)
			}
		})
	}
}

// Paths of the host may be relative, and a mount without a type is a bind mount.
func TestRelativePaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	spec := engine.Spec{FS: engine.FS{
		Root: "image", Workspace: "project",
		Mounts: []engine.Mount{{Source: "data", Target: "/data"}, {Type: engine.MountTmpfs, Target: "/scratch"}},
	}}
	if err := spec.Validate(); err != nil {
		t.Error(err)
	}
	p, err := engine.Compile(spec, linuxHost(nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "project"); p.Dir != want || p.Spec.FS.Workspace != want {
		t.Errorf("workspace %s, starts in %s", p.Spec.FS.Workspace, p.Dir)
	}
	want := engine.Mount{Type: engine.MountBind, Source: filepath.Join(dir, "data"), Target: "/data"}
	if got := p.Spec.FS.Mounts[0]; got != want {
		t.Errorf("mount %+v, want %+v", got, want)
	}
	if want := filepath.Join(dir, "image"); p.Spec.FS.Root != want {
		t.Errorf("root %s", p.Spec.FS.Root)
	}
	if spec.FS.Workspace != "project" || spec.FS.Mounts[0].Type != "" {
		t.Error("Compile has changed the Spec")
	}
	bad := engine.Spec{FS: engine.FS{Mounts: []engine.Mount{{Source: "data", Target: "data"}}}}
	if err := bad.Validate(); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("a relative target: %v", err)
	}
}

func TestSeccompOfAPlan(t *testing.T) {
	compile := func(s engine.Spec) *engine.Plan {
		p, err := engine.Compile(s, linuxHost(nil))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	off := compile(engine.Spec{Seccomp: engine.Seccomp{Profile: engine.SeccompOff}})
	zero, strict := compile(engine.Spec{}), compile(engine.Spec{Seccomp: engine.Seccomp{Profile: "strict"}})
	if off.FilterLen() != 0 || zero.FilterLen() == 0 || strict.FilterLen() == 0 || strict.FilterLen() == zero.FilterLen() {
		t.Errorf("filters of %d, %d and %d instructions", off.FilterLen(), zero.FilterLen(), strict.FilterLen())
	}
	for name, c := range map[string]engine.Seccomp{
		"an unknown profile": {Profile: "nope"},
		"two of them":        {Profile: "strict", Policy: new(seccomp.Policy)},
		"an empty policy":    {Policy: new(seccomp.Policy)},
		"an audit of none":   {Profile: engine.SeccompOff, Audit: true},
	} {
		if _, err := engine.Compile(engine.Spec{Seccomp: c}, linuxHost(nil)); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := engine.Compile(engine.Spec{}, linuxHost(func(h *engine.Host) { h.Seccomp = false }))
	if !errors.Is(err, engine.ErrUnsupported) {
		t.Errorf("a kernel without filters: %v", err)
	}
	p, err := engine.Compile(engine.Spec{Degrade: []engine.Protection{engine.ProtectSeccomp}},
		linuxHost(func(h *engine.Host) { h.Seccomp = false }))
	if err != nil || len(p.Dropped) != 1 || p.Dropped[0].Protection != engine.ProtectSeccomp || p.FilterLen() != 0 {
		t.Errorf("a kernel without filters, accepted: %+v, %v", p, err)
	}
}

func TestPlaceholders(t *testing.T) {
	p, err := engine.Compile(engine.Spec{FS: engine.FS{Workspace: "/w", Protect: engine.ProtectStrict, AllowWrite: []string{".vscode"}}}, linuxHost(nil))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(p.Placeholders(), " ")
	if !strings.Contains(got, "/w/.git ") || !strings.Contains(got, "/w/.npmrc") || strings.Contains(got, ".vscode") {
		t.Errorf("got %s", got)
	}
	if p, err := engine.Compile(engine.Spec{}, linuxHost(nil)); err != nil || p.Placeholders() != nil {
		t.Errorf("without a workspace: %v, %v", p.Placeholders(), err)
	}
}
