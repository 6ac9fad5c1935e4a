//go:build linux && (amd64 || arm64)

package setup

import (
	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
)

// restrictFiles confines the calling process and its descendants for good. It comes
// after the no-new-privileges flag and after everything that the process opens for
// itself.
func restrictFiles(p *launch.Program, r ns.Ruleset) {
	files, tcp, scope := r.Handled()
	// struct landlock_ruleset_attr: an older kernel knows a shorter one.
	size := 8
	if r.ABI >= 4 {
		size = 16
	}
	if r.ABI >= 6 {
		size = 24
	}
	attr := p.Words(uint64(files), tcp, scope)
	create := p.Do("create ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, attr, launch.Int(size))
	set := create.Slot().Arg()
	for _, g := range r.Grants() {
		// struct landlock_path_beneath_attr: the rights, and the descriptor.
		rule := p.Words(uint64(g.Access), ^uint64(0))
		// A guest may have moved a directory on the way to one of its mounts: then
		// it has no rights there.
		resolve(p, "open", g.Path, launch.Int(cwd), g.Path, noLinks).Try().Into(p.SlotIn(rule, 1))
		beneath := launch.Int(unix.LANDLOCK_RULE_PATH_BENEATH)
		p.Do("grant", g.Path, unix.SYS_LANDLOCK_ADD_RULE, set, beneath, rule).Try()
	}
	p.Do("restrict", "files", unix.SYS_LANDLOCK_RESTRICT_SELF, set)
}

// noLinks refuses symbolic links anywhere in a path.
const noLinks = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
