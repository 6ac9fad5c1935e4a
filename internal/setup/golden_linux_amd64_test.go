package setup_test

import (
	"flag"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func hostFile(path string, dir bool) rootfs.Source {
	return rootfs.Source{Path: path, Identity: rootfs.Identity{Dev: 1, Ino: 2, Dir: dir}}
}

var goldenTable = rootfs.Table{
	{Path: "/", Kind: rootfs.Static, Mode: 0o755},
	{Path: "/usr", Kind: rootfs.Bind, Source: hostFile("/usr", true), ReadOnly: true},
	{Path: "/bin", Kind: rootfs.Symlink, Data: "/usr/bin"},
	{Path: "/dev", Kind: rootfs.Dir, Mode: 0o755},
	{Path: "/etc", Kind: rootfs.Dir, Mode: 0o755},
	{Path: "/proc", Kind: rootfs.Proc, Masked: []string{"kcore", "scsi/"}, Locked: []string{"sys"}},
	{Path: "/tmp", Kind: rootfs.Tmpfs, Mode: 0o1777, Size: 1 << 20, Inodes: 100},
	{Path: "/dev/null", Kind: rootfs.Device, Source: hostFile("/dev/null", false)},
	{Path: "/dev/pts", Kind: rootfs.Devpts},
	{Path: "/etc/passwd", Kind: rootfs.File, Mode: 0o644, Data: "user"},
}

var goldenConfig = setup.Config{
	Table: goldenTable, Layout: goldenTable.Layout(), IDs: ns.IDs{UID: 1000, GID: 1000, HostUID: 501, HostGID: 502}, Hostname: "sandbox",
	ProcFD: 4, PauseFD: 5, PipeFD: 6,
}

func goldenCommand() setup.Command {
	return setup.Command{
		InitFD: 10, Paths: []string{"/usr/bin/x", "/bin/x"}, Argv: []string{"x", "y"}, Env: []string{"A=b"},
		Dir: "/tmp", Umask: 0o22,
		FDs: []int{0, 12, 2}, ReportFD: 13, GateFD: 14, Terminal: true, Signals: []unix.Signal{unix.SIGPIPE},
		Rlimits: []ns.Rlimit{{Name: "cpu", Soft: 1, Hard: 2}}, Keyring: "ring", Tagged: true,
		Landlock: &ns.Ruleset{ABI: 6, Rules: ns.GrantTable(goldenTable), TCP: true},
		Filters:  setup.Filters{Programs: [][]byte{make([]byte, 16), make([]byte, 8)}, Audit: true},
	}
}

// The programs, as system calls. Their safety rests on the order, so a review must
// see every change of it. The numbers of flags are amd64's.
func TestProgramsGolden(t *testing.T) {
	c := goldenConfig
	overlay := c
	overlay.Table = rootfs.Table{
		{Path: "/", Kind: rootfs.Overlay, Source: hostFile("/img", true), Size: 1 << 20, Inodes: 100},
		{Path: "/proc", Kind: rootfs.Proc},
	}
	overlay.Layout = overlay.Table.Layout()
	network, _, _ := setup.Network(c, 7)
	terminal, _, _ := setup.Terminal(10)
	memory, _, _ := setup.SharedMemory(10)
	alone := goldenCommand()
	alone.Landlock = &ns.Ruleset{ABI: 6, Scope: ns.ScopeSignal, Rules: []ns.Grant{
		ns.GrantSource(hostFile("/usr", true), ns.Read), ns.GrantSource(hostFile("/etc/passwd", false), ns.Read),
	}}
	alone.Terminal, alone.Filters.Audit = false, false
	janitor := setup.NewJanitor(6, []setup.PlaceholderDir{
		{DirFD: 15, LockFD: 16, Lock: "lock", Placeholders: []setup.Placeholder{
			{Name: "a"}, {Name: "b/c"}, {Name: "f", File: true, Size: 2},
		}},
		{DirFD: 17, LockFD: 18, Lock: "lock"},
	})
	for name, p := range map[string]*launch.Program{
		"direct":   setup.Direct(c).Program,
		"overlay":  setup.Direct(overlay).Program,
		"template": setup.NewTemplate(c).Program,
		"from":     setup.From(c, 7, 8, 9).Program,
		"stash":    setup.NewTemplate(withWorkspace(c)).Program,
		"stashed":  setup.From(withWorkspace(c), 7, 8, 9).Program,
		"network":  network,
		"terminal": terminal,
		"memory":   memory,
		"enter":    setup.Enter(goldenCommand()).Program,
		"upper":    setup.Direct(withUpper(c)).Program,
		"view":     setup.Direct(withViews(c)).Program,
		"landlock": setup.LandlockOnly{ReaperFD: 15, ControlFD: 16, StatusFD: 17}.Enter(alone).Program,
		"janitor":  janitor.Program,
	} {
		testenv.Golden(t, filepath.Join("testdata", name+".txt"), p.String(), *update)
	}
}

// withViews has a directory of the host that hides nothing, and a writable one that does.
func withViews(c setup.Config) setup.Config {
	home := hostFile("/home/u", true)
	home.Mode = 0o710
	c.Table = rootfs.Table{
		{Path: "/", Kind: rootfs.Static, Mode: 0o755},
		{Path: "/opt", Kind: rootfs.View, Source: hostFile("/opt", true), ReadOnly: true},
		{Path: "/home", Kind: rootfs.Dir, Mode: 0o755},
		{Path: "/home/u", Kind: rootfs.View, Source: home, Mode: 0o710, Size: 1 << 20, Inodes: 100,
			Hidden: []string{".config/gh", ".config/op", ".ssh"}},
	}
	c.Layout = c.Table.Layout()
	return c
}

// withUpper has a root from the host and on it one overlay in memory, whose upper
// directory is handed over, and one that is kept in a directory.
func withUpper(c setup.Config) setup.Config {
	c.UpperFD = 7
	c.Table = rootfs.Table{
		{Path: "/", Kind: rootfs.Bind, Source: hostFile("/img", true), ReadOnly: true},
		{Path: "/a", Kind: rootfs.Overlay, Source: hostFile("/src", true), Mode: 0o750, Size: 1 << 20, Inodes: 100},
		{Path: "/b", Kind: rootfs.Overlay, Source: hostFile("/src", true), Upper: hostFile("/kept", true), Mode: 0o755},
	}
	c.Layout = c.Table.Layout()
	return c
}

// withWorkspace has a workspace in /tmp, in which a directory is pinned and a file protected.
func withWorkspace(c setup.Config) setup.Config {
	c.Table = rootfs.Table{
		{Path: "/", Kind: rootfs.Static, Mode: 0o755},
		{Path: "/tmp", Kind: rootfs.Tmpfs, Mode: 0o1777},
		{Path: "/tmp/ws", Kind: rootfs.Bind, Source: hostFile("/tmp/ws", true)},
		{Path: "/tmp/ws/.git", Kind: rootfs.Bind, Source: hostFile("/tmp/ws/.git", true)},
		{Path: "/tmp/ws/.git/config", Kind: rootfs.Bind, Source: hostFile("/tmp/ws/.git/config", false), ReadOnly: true},
	}
	c.Layout = c.Table.Layout()
	return c
}
