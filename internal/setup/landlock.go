//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
)

// restrictFiles confines the calling process, and what it starts, for good. The
// process already has no new privileges, and has opened all it will open for
// itself.
func restrictFiles(p *launch.Program, r ns.Ruleset) {
	files, tcp, scope := r.Handled()
	// struct landlock_ruleset_attr: an older kernel knows less of it.
	size := 8
	if r.ABI >= 4 {
		size = 16
	}
	if r.ABI >= 6 {
		size = 24
	}
	attr := p.Words(uint64(files), tcp, scope)
	set := p.Do("create ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, attr, launch.Int(size), launch.Int(0)).Slot()
	const how = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	for _, g := range r.Grants() {
		// struct landlock_path_beneath_attr: the rights, and the descriptor.
		rule := p.Words(uint64(g.Access), ^uint64(0))
		fd := p.SlotIn(rule, 1)
		// A guest may have moved what leads to a mount of its own: then it has no
		// rights there.
		p.Do("open", g.Path, unix.SYS_OPENAT2, launch.Int(unix.AT_FDCWD), p.Str(g.Path),
			p.Words(unix.O_PATH|unix.O_CLOEXEC, 0, how), launch.Int(24)).Try().Into(fd)
		p.Do("grant", g.Path, unix.SYS_LANDLOCK_ADD_RULE, set.Arg(),
			launch.Int(unix.LANDLOCK_RULE_PATH_BENEATH), rule, launch.Int(0)).Try()
	}
	p.Do("restrict", "files", unix.SYS_LANDLOCK_RESTRICT_SELF, set.Arg(), launch.Int(0))
}
