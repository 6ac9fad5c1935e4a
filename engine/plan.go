package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/rootfs"
	"github.com/tegmen-dev/tegmen/seatbelt"
	"github.com/tegmen-dev/tegmen/seccomp"
	"github.com/tegmen-dev/tegmen/workspace"
)

// Plan is everything that has been decided about a sandbox. It is data: it can
// be printed, compared and started any number of times.
type Plan struct {
	Spec    Spec      // as it was compiled; do not change
	Level   Level     // what confines it
	Dir     string    // where commands start
	Env     []string  // of every command
	Limits  []Limit   // each limit with who enforces it
	Dropped []Dropped // protections given up, as Spec.Degrade allows

	hostname  string
	table     rootfs.Table
	workspace *rootfs.Source  // nil: a private one
	guards    bool            // the workspace has protected parts; see protect.go
	rules     workspace.Rules // of what a commit may change; see overlay.go
	ghostDirs []ghostDir      // where ghosts have to be made
	notes     []string        // what else is worth knowing
	ids       identity
	limits    Limits // with the defaults filled in
	rlimits   []rlimit
	cgroup    cgroup.Settings // none: it has no cgroup
	watch     watch
	budget    string         // the workspace, if what is added to it is watched
	profile   string         // name of the seccomp profile
	filter    seccomp.Filter // nil: none
	landlock  landlock
	seatbelt  seatbelt.Config // of LevelSeatbelt, with placeholders; see bareDirs
	system    string          // as Host.OS
	private   string          // of one sandbox without namespaces: its directory; see in
	upperFD   int             // of one start: where the upper of an overlay is sent to; see ns.Config

	// key is the same for plans whose sandboxes may share a template.
	key func() string
}

// identity is the sandbox's user, inside and on the host.
type identity struct {
	uid, gid         int
	hostUID, hostGID int
}

// rlimit is a resource limit by its name in ulimit. The guest cannot raise it
// above hard.
type rlimit struct {
	name       string
	soft, hard uint64
}

const nobody = 65534

// Compile decides how to make a sandbox. It only looks: paths are resolved and
// remembered by device and inode, so that Start can refuse what has changed
// since. Its errors are all that is wrong, joined: ErrInvalid for a Spec that
// cannot be, UnsupportedError for what this host cannot do.
func Compile(s Spec, h Host) (*Plan, error) {
	if err := s.Validate(); err != nil {
		return nil, &Error{Op: "compile", Err: err}
	}
	p := &Plan{Spec: s.clone(), hostname: s.Hostname, limits: s.Limits.withDefaults(h)}
	if p.hostname == "" {
		p.hostname = "sandbox"
	}
	errs := []error{p.decideLevel(h)}
	if err := p.decideUser(h); err != nil {
		errs = append(errs, err) // what it could not find, decideFiles would not either
	} else {
		errs = append(errs, p.decideFiles(h))
	}
	p.decideEnv()
	errs = append(errs, p.decideLimits(h), p.decideOverlay(h), p.decideSeccomp(h))
	if p.bare() {
		p.bareDirs()
	}
	switch {
	case p.Level == LevelNamespaces:
		p.decideLandlock(h)
	case p.Level == LevelLandlock:
		p.decideBare(h)
	case p.Level == LevelSeatbelt:
		errs = append(errs, p.decideSeatbelt(h))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &Error{Op: "compile", Err: err}
	}
	// The whole table: the points on which the rest is mounted are made in the
	// shared part. Once, and only when a second sandbox may come.
	p.key = sync.OnceValue(func() string { return fmt.Sprint(p.ids, "\n") + p.table.Key() })
	return p, nil
}

// clone copies what a caller could change under the plan.
func (s Spec) clone() Spec {
	s.FS.Mounts, s.Env, s.Degrade = slices.Clone(s.FS.Mounts), slices.Clone(s.Env), slices.Clone(s.Degrade)
	s.FS.AllowWrite, s.Limits.IO, s.Require = slices.Clone(s.FS.AllowWrite), slices.Clone(s.Limits.IO), slices.Clone(s.Require)
	s.Seatbelt.Hidden = slices.Clone(s.Seatbelt.Hidden)
	if s.User != nil {
		u := *s.User
		s.User = &u
	}
	return s
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (p *Plan) decideUser(h Host) error {
	id := identity{uid: 1000, gid: 1000, hostUID: h.UID, hostGID: h.GID}
	if u := p.Spec.User; u != nil {
		id.uid, id.gid = u.UID, u.GID
	}
	if h.UID == 0 && !h.Become && !h.Contained {
		return &UnsupportedError{Feature: "starting as root", Remedy: "guests are never host root, and without CAP_SETUID, CAP_SETGID and CAP_SETPCAP they cannot be anyone else: run as an ordinary user"}
	}
	if h.Become {
		// A guest is never host root. What it may write to belongs to its user.
		id.hostUID, id.hostGID = nobody, nobody
		if ws := p.Spec.FS.Workspace; ws != "" {
			src, err := lookUp("workspace", ws, h)
			if err != nil {
				return err
			}
			id.hostUID, id.hostGID = orDefault(src.UID, nobody), orDefault(src.GID, nobody)
			p.workspace = &src
		}
	}
	if p.bare() {
		id.uid, id.gid = id.hostUID, id.hostGID
	}
	p.ids = id
	return nil
}

func (p *Plan) decideFiles(h Host) error {
	o := rootfs.Options{
		UID: p.ids.uid, GID: p.ids.gid, Hostname: p.hostname, Proc: h.Proc,
		TmpBytes: tmpfsLimit(p.limits.Tmp), TmpInodes: tmpfsLimit(p.limits.TmpFiles),
	}
	var err error
	switch root := p.Spec.FS.Root; {
	case p.plain():
		p.table = rootfs.Table{{Path: "/", Kind: rootfs.Dir}} // and what else there is, the host has
	case root == "":
		p.table, err = rootfs.Host(h.Lookup, o)
	default:
		p.table, err = rootfs.Directory(h.Lookup, root, p.Spec.FS.Overlay, o)
	}
	if err != nil {
		return hostError("root", p.Spec.FS.Root, err)
	}
	binds, err := p.binds(h)
	if err != nil {
		return err
	}
	guards, err := p.protect(h)
	if err != nil {
		return err
	}
	binds = append(binds, guards...)
	// As docker does: what stands deeper comes later, in whatever order it was given.
	slices.SortStableFunc(binds, func(a, b rootfs.Node) int { return rootfs.Depth(a.Path) - rootfs.Depth(b.Path) })
	for _, n := range binds {
		p.table = p.table.Add(n)
	}
	p.linkWorkspace()
	switch {
	case p.Spec.FS.Workspace != "":
		p.Dir = filepath.Clean(p.Spec.FS.Workspace)
	case p.table.Has(rootfs.Workspace):
		p.Dir = rootfs.Workspace
	default:
		p.Dir = "/tmp"
	}
	p.table.Sort()
	return nil
}

// binds are the mounts that the Spec asks for, the workspace among them.
func (p *Plan) binds(h Host) (nodes []rootfs.Node, err error) {
	var errs []error
	for _, m := range p.Spec.FS.Mounts {
		n, err := p.mount(m, h)
		nodes, errs = append(nodes, n), append(errs, err)
	}
	if ws := p.Spec.FS.Workspace; ws != "" {
		at, err := p.bindWorkspace(ws, h)
		nodes, errs = append(nodes, at...), append(errs, err)
	}
	seen := make(map[string]bool)
	for _, n := range nodes {
		if seen[n.Path] && n.Path != "" {
			errs = append(errs, invalid("mount %s: given twice", n.Path))
		}
		seen[n.Path] = true
	}
	return nodes, errors.Join(errs...)
}

// hostError makes a path of the host that is missing or odd the caller's
// mistake, in the caller's words.
func hostError(what, path string, err error) error {
	if errors.Is(err, ErrInvalid) {
		return err
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%w: %s %s: %w", ErrInvalid, what, path, pe.Err)
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

// tmpfsLimit: 0 is no limit to a tmpfs.
func tmpfsLimit[T Bytes | int](v T) int64 {
	if v == Unlimited {
		return 0
	}
	return int64(v)
}

func (p *Plan) mount(m Mount, h Host) (rootfs.Node, error) {
	at := path.Clean(m.Target)
	if m.Type == MountTmpfs {
		size, mode := orDefault(m.Size, p.limits.Tmp), orDefault(m.Mode, 0o1777)
		return rootfs.Node{Path: at, Kind: rootfs.Tmpfs, Mode: mode, Size: tmpfsLimit(size), Inodes: tmpfsLimit(p.limits.TmpFiles)}, nil
	}
	src, err := lookUp("mount", m.Source, h)
	return rootfs.Node{Path: at, Kind: rootfs.Bind, Source: src, ReadOnly: m.ReadOnly}, err
}

// lookUp finds a source that is not the root of the host by another name.
func lookUp(what, path string, h Host) (rootfs.Source, error) {
	src, err := h.Lookup(path)
	if err != nil {
		return src, hostError(what, path, err)
	}
	if src.Path == "/" {
		return src, invalid("%s %s: leads to /, and the whole host cannot be given to a sandbox", what, path)
	}
	return src, nil
}

// bindWorkspace binds the directory at the path it was asked for and, when that
// goes through a symbolic link, at the path it really has.
func (p *Plan) bindWorkspace(ws string, h Host) (nodes []rootfs.Node, err error) {
	if p.workspace == nil {
		src, err := lookUp("workspace", ws, h)
		if err != nil {
			return nil, err
		}
		p.workspace = &src
	}
	src := *p.workspace
	if !src.Dir {
		return nil, invalid("workspace %s: not a directory", ws)
	}
	paths := []string{filepath.Clean(ws)}
	if src.Path != paths[0] {
		paths = append(paths, src.Path)
	}
	for _, at := range paths {
		if err := target("workspace", at); err != nil {
			return nil, err
		}
		for _, dir := range []string{"/usr", "/etc", "/bin", "/sbin", "/lib"} {
			if rootfs.Within(dir, at) {
				return nil, invalid("workspace %s: %s is the system's", ws, dir)
			}
		}
		nodes = append(nodes, rootfs.Node{Path: at, Kind: rootfs.Bind, Source: src})
	}
	if p.overlaid() {
		nodes = []rootfs.Node{p.overlay(src)}
	}
	if h.Become && src.UID == 0 && src.Mode&0o002 == 0 {
		return nil, invalid("workspace %s: belongs to root, as whom no guest ever runs, so it could not be written to: chown it to an ordinary user", ws)
	}
	return nodes, nil
}

func (p *Plan) decideEnv() {
	path, lang := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "C.UTF-8"
	if p.system == "darwin" {
		path, lang = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "en_US.UTF-8" // there is no C.UTF-8 before macOS 13
	}
	p.Env = mergeEnv([]string{"PATH=" + path, "HOME=/tmp", "TMPDIR=/tmp", "LANG=" + lang}, p.Spec.Env)
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

// String prints the whole plan, one decision a line. It is stable: tests
// compare it.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "level    %s\n", p.Level)
	fmt.Fprintf(&b, "user     %d:%d, on the host %d:%d\n", p.ids.uid, p.ids.gid, p.ids.hostUID, p.ids.hostGID)
	network := "none but lo"
	switch p.Level {
	case LevelNamespaces:
		fmt.Fprintf(&b, "hostname %s\n", p.hostname)
	case LevelNone:
		network = "the host's"
	default:
		network = "none"
	}
	fmt.Fprintf(&b, "network  %s\ndir      %s\n", network, p.Dir)
	for _, kv := range p.Env {
		fmt.Fprintf(&b, "env      %s\n", kv)
	}
	for _, n := range p.table {
		fmt.Fprintf(&b, "%s\n", n)
	}
	b.WriteString(p.confinement())
	for _, d := range p.ghostDirs {
		for _, g := range d.ghosts {
			for _, at := range g.at {
				fmt.Fprintf(&b, "ghost    %s (ro, made for the sandbox's life)\n", at)
			}
		}
	}
	for _, r := range p.rules.Protected {
		fmt.Fprintf(&b, "protect  %s (never committed)\n", path.Join(p.workspace.Path, r))
	}
	for _, n := range p.notes {
		fmt.Fprintf(&b, "note     %s\n", n)
	}
	for _, l := range p.Limits {
		by := l.Enforcer
		if by == "" {
			by = "nothing"
		}
		fmt.Fprintf(&b, "limit    %s %s (%s)\n", l.Name, l.Value, by)
	}
	for _, d := range p.Dropped {
		fmt.Fprintf(&b, "dropped  %s: %s\n", d.Protection, d.Reason)
	}
	return b.String()
}
