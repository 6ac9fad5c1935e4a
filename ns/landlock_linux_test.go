//go:build linux && (amd64 || arm64)

package ns_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

func TestLandlockLacks(t *testing.T) {
	const (
		moving     = "moving files between directories (5.19)"
		truncation = "truncation (6.2)"
		ports      = "TCP ports (6.7)"
		ioctl      = "ioctl on devices (6.10)"
		signals    = "signals and abstract sockets (6.12)"
		sockets    = "sockets in files (7.1)"
	)
	for abi, want := range [][]string{
		0: {"rights to files (5.13)", moving, truncation, ports, ioctl, signals, sockets},
		1: {moving, truncation, ports, ioctl, signals, sockets},
		2: {truncation, ports, ioctl, signals, sockets},
		3: {ports, ioctl, signals, sockets},
		4: {ioctl, signals, sockets},
		5: {signals, sockets},
		6: {sockets}, 7: {sockets}, 8: {sockets},
		9: nil, 10: nil,
	} {
		if got := strings.Join(ns.LandlockLacks(abi), ", "); got != strings.Join(want, ", ") {
			t.Errorf("version %d lacks %s, want %s", abi, got, strings.Join(want, ", "))
		}
	}
}

// Nobody may create device nodes, a file has no rights of directories, and no rule
// allows connecting to a socket of the host, where the kernel can tell.
func TestGrants(t *testing.T) {
	const device = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	const connect = 1 << 16 // LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	dir := rootfs.Source{Identity: rootfs.Identity{Dir: true}}
	grants := ns.GrantTable(rootfs.Table{
		{Path: "/", Kind: rootfs.Static},
		{Path: "/usr", Kind: rootfs.Bind, Source: dir, ReadOnly: true},
		{Path: "/ws", Kind: rootfs.Bind, Source: dir},
		{Path: "/f", Kind: rootfs.Bind},
		{Path: "/tmp", Kind: rootfs.Tmpfs},
		{Path: "/proc", Kind: rootfs.Proc},
	})
	type rights struct{ write, create, connect bool }
	want := map[string]rights{
		"/": {}, "/ws": {write: true, create: true}, "/f": {write: true, create: true},
		"/tmp": {write: true, create: true, connect: true}, "/proc": {write: true},
	}
	for _, g := range grants {
		w, ok := want[g.Path]
		delete(want, g.Path)
		got := rights{
			write:   g.Access&unix.LANDLOCK_ACCESS_FS_WRITE_FILE != 0,
			create:  g.Access&unix.LANDLOCK_ACCESS_FS_MAKE_REG != 0,
			connect: g.Access&connect != 0,
		}
		if !ok || got != w || g.Access&device != 0 || g.File != (g.Path == "/f") {
			t.Errorf("%s: %x, want %+v", g.Path, uint64(g.Access), w)
		}
	}
	if len(want) > 0 {
		t.Errorf("nothing for %v", want)
	}
}
