package engine

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// nobody is who guests of root are on the host where no workspace says another.
const nobody = 65534

// planner makes a Plan from a Spec and a Host.
type planner struct {
	spec   Spec
	host   Host
	plan   *Plan
	errs   []error
	limits Limits // with the defaults filled in

	config    box.Config
	workspace *rootfs.Source // nil: a private one
	home      string         // "": /tmp
	refused   []protect.Dir  // placeholders that cannot be made without namespaces
}

func newPlanner(s Spec, h Host) *planner {
	pl := &planner{spec: s, host: h, limits: s.Limits.withDefaults(h)}
	pl.plan = &Plan{Spec: s.clone(), limits: pl.limits}
	pl.config.Name, pl.config.Hostname = s.Name, cmp.Or(s.Hostname, "sandbox")
	pl.config.KillAlone, pl.config.Umask = s.Keep, cmp.Or(h.Umask, 0o022)
	return pl
}

// fail records an error; nil is none.
func (pl *planner) fail(err error) {
	if err != nil {
		pl.errs = append(pl.errs, err)
	}
}

// note records what people should know.
func (pl *planner) note(format string, args ...any) {
	pl.plan.notes = append(pl.plan.notes, fmt.Sprintf(format, args...))
}

// accepts reports whether the Spec accepts to lose a protection.
func (pl *planner) accepts(what Protection) bool { return slices.Contains(pl.spec.Degrade, what) }

// drop records a protection that is given up.
func (pl *planner) drop(what Protection, why string) {
	pl.plan.Dropped = append(pl.plan.Dropped, Dropped{what, why})
}

// lookup finds a file of the host.
func (pl *planner) lookup(path string) (rootfs.Source, error) {
	if pl.host.Lookup == nil {
		return rootfs.Source{}, &fs.PathError{Op: "find", Path: path, Err: fs.ErrNotExist}
	}
	return pl.host.Lookup(path)
}

// source finds what the Spec names, unless it is the root of the host by another
// name.
func (pl *planner) source(field, path string) (rootfs.Source, error) {
	src, err := pl.lookup(path)
	if err != nil {
		return src, hostError(field, path, err)
	}
	if pl.isHost(src) {
		return src, invalidField(field, path, "leads to /, and the whole host cannot be given to a sandbox")
	}
	return src, nil
}

// isHost reports whether a directory is the host's root, or another mount of that.
func (pl *planner) isHost(src rootfs.Source) bool {
	if src.Path == "/" {
		return true
	}
	if !src.Dir {
		return false
	}
	root, err := pl.lookup("/")
	return err == nil && src.Identity == root.Identity
}

// decideUser finds out who commands run as. It reports whether that is known.
func (pl *planner) decideUser() bool {
	h := pl.host
	id := ns.IDs{UID: 1000, GID: 1000, HostUID: h.UID, HostGID: h.GID}
	if u := pl.spec.User; u != nil {
		id.UID, id.GID = u.UID, u.GID
	}
	if h.UID == 0 && !h.Become && !h.Contained {
		pl.fail(&UnsupportedError{Feature: "starting as root",
			Remedy: "guests are never host root, and without CAP_SETUID, CAP_SETGID and CAP_SETPCAP " +
				"they cannot be anyone else: run as an ordinary user"})
		return false
	}
	if h.Become {
		// A guest is never host root. What it may write to belongs to its user.
		id.HostUID, id.HostGID = nobody, nobody
		if ws := pl.spec.FS.Workspace; ws != "" {
			src, err := pl.source("fs.workspace", ws)
			if err != nil {
				pl.fail(err)
				return false
			}
			if src.UID != 0 {
				id.HostUID, id.HostGID = src.UID, cmp.Or(src.GID, nobody)
			}
			pl.workspace = &src
		}
	}
	if !pl.hasNamespaces() {
		id.UID, id.GID = id.HostUID, id.HostGID
	}
	pl.config.IDs = id
	return true
}

// DefaultPath is the variable PATH of a sandbox whose Spec.Env has none, on a system that
// is named as GOOS names it.
func DefaultPath(system string) string {
	if system == "darwin" {
		return "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

func (pl *planner) decideEnv() {
	lang := "C.UTF-8"
	if pl.host.OS == "darwin" {
		lang = "en_US.UTF-8" // there is no C.UTF-8 before macOS 13
	}
	home, path := cmp.Or(pl.home, "/tmp"), DefaultPath(pl.host.OS)
	if pl.spec.FS.View == ViewHost {
		path = viewPath(pl.host, pl.home, path)
	}
	pl.plan.Env = mergeEnv([]string{"PATH=" + path, "HOME=" + home, "TMPDIR=/tmp", "LANG=" + lang}, pl.spec.Env)
}

// shownLimits are what programs inside can find out about their limits.
func (pl *planner) shownLimits() *rootfs.Limits {
	l := &rootfs.Limits{V1: pl.host.Cgroup.V1}
	if n := pl.limits.Pids; n < UnlimitedCount {
		l.Pids = int64(n)
	}
	if n := pl.limits.Memory; n < UnlimitedBytes {
		l.Memory = int64(n)
	}
	if pl.host.Cgroup.Has("cpu") {
		l.CPUs = pl.limits.CPUs
	}
	return l
}

// mergeEnv adds to env; a later value replaces an earlier one of that name.
func mergeEnv(env, more []string) []string {
	out := slices.Clone(env)
	at := make(map[string]int, len(env)+len(more))
	for i, kv := range out {
		name, _, _ := strings.Cut(kv, "=")
		at[name] = i
	}
	for _, kv := range more {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := at[name]; ok {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out
}

// hasNamespaces reports whether the sandbox has a view of its own of files and
// processes.
func (pl *planner) hasNamespaces() bool { return pl.plan.Level == LevelNamespaces }

// usesProcessGroups reports whether the sandbox has nothing that Linux alone has:
// it is a private directory, and process groups. On Linux that is so without
// isolation: what ends the processes of LevelLandlock is safe only where Landlock
// keeps its signals in.
func (pl *planner) usesProcessGroups() bool { return usesProcessGroups(pl.plan.Level) }

func usesProcessGroups(l Level) bool { return l == LevelSeatbelt || l == LevelNone }
