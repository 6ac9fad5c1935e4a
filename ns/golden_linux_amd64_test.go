package ns_test

import (
	"flag"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/layout"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/ns"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The programs, as system calls: what a change of them does to the order, which
// is what their safety rests on, is to be seen in review. The numbers of flags
// are amd64's.
func TestProgramsGolden(t *testing.T) {
	host := func(path string, dir bool) layout.Source {
		return layout.Source{Path: path, Identity: layout.Identity{Dev: 1, Ino: 2, Dir: dir}}
	}
	table := layout.Table{
		{Path: "/", Kind: layout.Static, Mode: 0o755},
		{Path: "/usr", Kind: layout.Bind, Source: host("/usr", true), ReadOnly: true},
		{Path: "/bin", Kind: layout.Symlink, Data: "/usr/bin"},
		{Path: "/dev", Kind: layout.Dir, Mode: 0o755},
		{Path: "/etc", Kind: layout.Dir, Mode: 0o755},
		{Path: "/proc", Kind: layout.Proc, Masked: []string{"kcore", "scsi/"}, Locked: []string{"sys"}},
		{Path: "/tmp", Kind: layout.Tmpfs, Mode: 0o1777, Size: 1 << 20, Inodes: 100},
		{Path: "/dev/null", Kind: layout.Device, Source: host("/dev/null", false)},
		{Path: "/dev/pts", Kind: layout.Devpts},
		{Path: "/etc/passwd", Kind: layout.File, Mode: 0o644, Data: "user"},
	}
	c := ns.Config{Table: table, IDs: ns.IDs{UID: 1000, GID: 1000, HostUID: 501, HostGID: 502}, Hostname: "sandbox", ProcFD: 4, PauseFD: 5, PipeFD: 6}
	overlay := c
	overlay.Table = layout.Table{{Path: "/", Kind: layout.Overlay, Source: host("/img", true), Size: 1 << 20, Inodes: 100}, {Path: "/proc", Kind: layout.Proc}}
	network, _, _ := ns.Network(c, 7)
	terminal, _, _ := ns.Terminal(10)
	command := ns.Command{
		InitFD: 10, Paths: []string{"/usr/bin/x", "/bin/x"}, Argv: []string{"x", "y"}, Env: []string{"A=b"}, Dir: "/tmp", Umask: 0o22,
		FDs: []int{0, 12, 2}, ReportFD: 13, GateFD: 14, Terminal: true, Signals: []unix.Signal{unix.SIGPIPE},
		Rlimits: []ns.Rlimit{{Name: "cpu", Soft: 1, Hard: 2}}, Keyring: "ring", Marked: true,
		Landlock: &ns.Ruleset{ABI: 6, Rules: ns.Grants(table), TCP: true},
		Filters:  ns.Filters{Programs: [][]byte{make([]byte, 16), make([]byte, 8)}, Audit: true},
	}
	enter := ns.Enter(command)
	bare := command
	bare.Landlock = &ns.Ruleset{ABI: 6, Rules: []ns.Grant{ns.Source(host("/usr", true), ns.Read), ns.Source(host("/etc/passwd", false), ns.Read)}, Scope: ns.ScopeSignal}
	bare.Terminal, bare.Filters.Audit = false, false
	janitor := ns.NewJanitor(6, []ns.GhostDir{
		{DirFD: 15, LockFD: 16, Lock: "lock", Ghosts: []ns.Ghost{{Name: "a"}, {Name: "b/c"}, {Name: "f", File: true, Size: 2}}}, {DirFD: 17, LockFD: 18, Lock: "lock"},
	})
	for name, p := range map[string]*launch.Program{
		"direct": ns.Direct(c).Program, "overlay": ns.Direct(overlay).Program, "template": ns.NewTemplate(c).Program,
		"from": ns.From(c, 7, 8, 9).Program, "network": network, "terminal": terminal, "enter": enter.Program,
		"bare":    ns.Bare{ReaperFD: 15, ControlFD: 16, StatusFD: 17}.Enter(bare).Program,
		"janitor": janitor.Program,
	} {
		testenv.Golden(t, filepath.Join("testdata", name+".txt"), p.String(), *update)
	}
}
