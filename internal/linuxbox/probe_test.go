//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestProbe(t *testing.T) {
	h, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	if h.OS != "linux" || h.Arch != runtime.GOARCH || h.UID != os.Geteuid() || h.CPUs < 1 || h.MemoryBytes < 1<<20 {
		t.Errorf("got %+v", h)
	}
	if !box.KernelAtLeast(h.Kernel, "4.14") || !h.Seccomp || h.HardLimits["nofile"] == 0 {
		t.Errorf("kernel %q, seccomp %v, limits %v", h.Kernel, h.Seccomp, h.HardLimits)
	}
	if h.Become && h.UID != 0 || h.Lookup == nil || h.Device == nil || h.ReadFile == nil || h.TryNamespaces == nil {
		t.Errorf("got %+v", h)
	}
}

func TestTryNamespaces(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	if err := tryNamespaces(false); err != nil {
		t.Error(err)
	}
}

func TestHasID(t *testing.T) {
	const whole, container = "         0          0 4294967295\n", "0 1000 1\n1 100000 65536\n"
	for _, c := range []struct {
		table string
		id    int
		want  bool
	}{
		{whole, 0, true}, {whole, Nobody, true}, {container, 0, true}, {container, Nobody, true}, {container, 65536, true},
		{container, 65537, false}, {"0 1000 1\n", Nobody, false}, {"", 0, false}, {"odd\n", 0, false},
	} {
		if got := hasID(c.table, c.id); got != c.want {
			t.Errorf("%d in %q: %v", c.id, c.table, got)
		}
	}
}

// lookup finds what a path leads to, and refuses the kernel's other names for it.
func TestLookup(t *testing.T) {
	dir, err := filepath.EvalSymlinks(testenv.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(os.WriteFile(at("file"), nil, 0o640), os.Symlink("file", at("link")),
		os.Symlink("none", at("loose")), unix.Mkfifo(at("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, real string
		is         error
	}{
		{dir, dir, nil},
		{at("file"), at("file"), nil},
		{at("link"), at("file"), nil},
		{at("../" + filepath.Base(dir) + "//./link"), at("file"), nil},
		{"/dev/null", "/dev/null", nil},
		{at("none"), "", fs.ErrNotExist},
		{at("loose"), "", fs.ErrNotExist},
		{at("file/x"), "", unix.ENOTDIR},
		{at("fifo"), "", box.ErrNotFile},
		{at("socket"), "", box.ErrNotFile},
		{"/proc/self/root", "", unix.ELOOP},
		{"/proc/self/root/etc", "", unix.ELOOP},
		{"/proc/self/cwd", "", unix.ELOOP},
		{"/proc/self/fd/0", "", unix.ELOOP},
	} {
		src, err := lookup(c.path)
		if !errors.Is(err, c.is) || src.Path != c.real {
			t.Errorf("%s: %s, %v; want %s, %v", c.path, src.Path, err, c.real, c.is)
		}
	}
	if src, err := lookup(at("link")); err != nil || src.UID != os.Geteuid() || src.Mode != 0o640 || src.Dir {
		t.Errorf("%+v, %v", src, err)
	}
}

func TestDevice(t *testing.T) {
	for path, want := range map[string]error{"/dev/null": unix.ENOTBLK, "/": unix.ENOTBLK, "/none": fs.ErrNotExist} {
		if n, err := device(path); !errors.Is(err, want) {
			t.Errorf("%s: %q, %v", path, n, err)
		}
	}
}

// Diagnose has a remedy for all that is wrong, and for nothing else.
func TestDiagnose(t *testing.T) {
	good := box.Host{Arch: "amd64", Kernel: "6.12.0", UID: 1, Seccomp: true, Landlock: 6,
		Cgroup: cgroup.Place{Dir: "/c", Controllers: []string{"cpu", "cpuset", "io", "memory", "pids"}}}
	bad := box.Host{Arch: "amd64", Kernel: "5.4.0", Cgroup: cgroup.Place{Reason: "of a test", Remedy: "another test"}}
	of := func(h box.Host, what string) box.Finding {
		for _, f := range (&Machine{host: h}).Diagnose() {
			if f.What == what {
				return f
			}
		}
		t.Errorf("no finding on %s", what)
		return box.Finding{}
	}
	for _, what := range []string{"kernel", "account", "seccomp filters"} {
		if f := of(good, what); !f.OK || f.Remedy != "" || f.Detail == "" {
			t.Errorf("good: %+v", f)
		}
		if f := of(bad, what); f.OK || f.Remedy == "" || f.Detail == "" {
			t.Errorf("bad: %+v", f)
		}
	}
	if f := of(good, "cgroup"); f.Detail != "in /c: cpu cpuset io memory pids" {
		t.Errorf("good: %+v", f)
	}
	if f := of(bad, "cgroup"); !strings.Contains(f.Detail, "of a test") || !strings.Contains(f.Detail, "another test") {
		t.Errorf("bad: %+v", f)
	}
	for abi, want := range map[int]string{0: "none", 1: "lacks", 6: "version 6"} {
		h := good
		if h.Landlock = abi; !strings.Contains(of(h, "Landlock").Detail, want) {
			t.Errorf("Landlock %d: %+v", abi, of(h, "Landlock"))
		}
	}
	root := good
	root.UID, root.Become = 0, true
	if f := of(root, "account"); !f.OK || !strings.Contains(f.Detail, "owner of their workspace") {
		t.Errorf("root: %+v", f)
	}
}
