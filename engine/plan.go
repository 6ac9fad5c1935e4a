package engine

import (
	"fmt"
	"path"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// Plan is everything that has been decided about a sandbox. It is data: it can
// be printed, compared and started any number of times.
type Plan struct {
	Spec    Spec      // as it was compiled; do not change
	Level   Level     // what confines the sandbox
	Dir     string    // where commands start
	Env     []string  // of every command, "NAME=value"
	Limits  []Limit   // each limit with who enforces it
	Dropped []Dropped // protections given up, as Spec.Degrade allows

	config    box.Config     // for the operating system
	limits    Limits         // with the defaults filled in
	workspace *rootfs.Source // nil: a private one
	budget    string         // the workspace, if what is added to it is watched
	hidden    []string       // in the host's view
	notes     []string       // what else is worth knowing
	profile   string         // name of the seccomp profile
	landlock  string         // what Landlock does
	private   privatePaths
}

// Dropped is a protection that was given up, as Spec.Degrade allows.
type Dropped struct {
	Protection Protection // what was given up
	Reason     string     // why it cannot be had here
}

// FilterLen is the number of instructions of the plan's seccomp filter; 0
// without one.
func (p *Plan) FilterLen() int { return len(p.config.Filter) }

// Placeholders returns the absolute paths, inside, of what the sandbox adds to its
// workspace so that nobody else can: a protected name that did not exist (.git,
// .npmrc) is an empty directory or a file of at most two bytes while the sandbox
// lives, read-only and by its mode writable to nobody. They hold nothing of the
// workspace's owner, so a listing of the workspace may leave them out. They are
// sorted; nil is none.
//
// The engine may make fewer of them: none where no guest can make anything.
func (p *Plan) Placeholders() []string { return protect.Paths(p.config.Placeholders) }

// Calls lists the system calls that make the sandbox, when it is made from
// nothing, and that put a command, "PROGRAM", into it. The host's descriptors have
// example numbers.
//
// For LevelSeatbelt and LevelNone it is the command line that starts a command,
// with the profile.
func (p *Plan) Calls() string {
	program := "PROGRAM"
	if usesProcessGroups(p.Level) {
		program = "/PROGRAM"
	}
	r := box.Request{Paths: searchPath(program, p.Env), Argv: []string{program}, Env: p.Env, Dir: p.Dir}
	return calls(p.Level, &p.config, r, p.private.at)
}

// String prints the whole plan, one decision a line. It is stable: tests
// compare it.
func (p *Plan) String() string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s "+format+"\n", append([]any{what}, args...)...)
	}
	ids := p.config.IDs
	line("level", "%s", p.Level)
	line("user", "%d:%d, on the host %d:%d", ids.UID, ids.GID, ids.HostUID, ids.HostGID)
	network := "none"
	switch p.Level {
	case LevelNamespaces:
		line("hostname", "%s", p.config.Hostname)
		network = "none but lo"
	case LevelNone:
		network = "the host's"
	}
	line("network", "%s", network)
	line("dir", "%s", p.Dir)
	for _, kv := range p.Env {
		line("env", "%s", kv)
	}
	for _, n := range p.config.Table {
		fmt.Fprintf(&b, "%s\n", n)
	}
	for _, h := range p.hidden {
		line("hide", "%s", h)
	}
	p.printConfinement(line)
	for _, d := range p.config.Watched {
		for _, w := range d.Watched {
			line("watch", "%s (%s)", path.Join(d.Source.Path, w.Name), w.What)
		}
	}
	for _, d := range p.config.Placeholders {
		for _, ph := range d.Placeholders {
			for _, at := range ph.At {
				line("placeholder", "%s (ro, made for the sandbox's life)", at)
			}
		}
	}
	if o := p.config.Overlay; o != nil {
		for _, r := range o.Rules.Protected {
			line("protect", "%s (never committed)", path.Join(p.workspace.Path, r))
		}
	}
	for _, n := range p.notes {
		line("note", "%s", n)
	}
	for _, l := range p.Limits {
		line("limit", "%s", l)
	}
	for _, d := range p.Dropped {
		line("dropped", "%s: %s", d.Protection, d.Reason)
	}
	return b.String()
}

// printConfinement prints what was decided about system calls and files.
func (p *Plan) printConfinement(line func(what, format string, args ...any)) {
	switch p.Level {
	case LevelNone:
		return
	case LevelSeatbelt:
		p.printSeatbelt(line)
		return
	}
	if p.config.Filter == nil {
		line("seccomp", "off")
	} else {
		more := ""
		if p.config.NoExec {
			more += ", nothing else is executed"
		}
		if p.config.Audit {
			more += ", refusals are listed"
		}
		line("seccomp", "%s (%d instructions)%s", p.profile, len(p.config.Filter), more)
	}
	line("landlock", "%s", p.landlock)
}
