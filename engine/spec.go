package engine

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
)

// Spec says what a sandbox is to be. It is plain data: copy it, print it, store it
// as JSON. The engine never writes into it. The zero Spec is the tightest sandbox
// there is.
type Spec struct {
	Name     string   // a label for people, shown in the host's list of processes; may be empty
	Hostname string   // inside; "" means "sandbox"
	User     *User    // inside; nil means 1000:1000
	FS       FS       // the files it sees
	Env      []string // "NAME=value" for every command, added to the defaults; see Cmd.ExtraEnv
	Limits   Limits   // what it may use up
	Seccomp  Seccomp  // which system calls it may make

	// Keep lets the sandbox live on after a command in it reaches its wall clock
	// limit or is canceled: only that command and what descends from it are killed;
	// at the memory limit, all commands are killed. Without it the sandbox ends.
	Keep bool

	// Degrade lists protections that may be missing if the machine cannot give them.
	// Plan.Dropped and every Result list what was lost. A protection that is
	// unavailable and not listed is an error.
	Degrade []Protection

	// AllowNoIsolation lets commands run without any isolation if the machine offers
	// none that is sufficient, for development: with the limits and the interfaces of a
	// sandbox, and all that this user may do. It accepts LevelLandlock as well. Where
	// there is isolation, it changes nothing.
	AllowNoIsolation bool

	// Require lists who must enforce a limit, where a weaker enforcer will not do.
	// Without it the kernel limits memory, for example, if tegmen can create cgroups, and
	// otherwise a watchdog does, which acts after the fact.
	Require []Requirement
}

// Requirement demands an enforcer of a limit.
type Requirement struct {
	Limit    LimitName    // the limit
	Enforcer EnforcerKind // what must enforce it
}

// User is who commands run as inside. On the host it is the user that the
// engine runs as; for root it is the owner of the workspace, or nobody.
type User struct {
	UID, GID int // 0 is root inside, without any capability
}

// FS says what files a sandbox has. Paths of the host may be relative to the
// current directory.
type FS struct {
	// Root is a directory of the host that holds a root file system, used
	// read-only. "" is a view of the host's own system directories.
	Root string
	// View says what of the host's files can be seen without a Root; "" is ViewSystem.
	View ViewMode
	// Hidden are paths of the host that do not exist inside, with what is beneath them,
	// besides SecretPaths. On Linux they need ViewHost and cannot lie in the workspace or in
	// what is mounted; what is mounted itself can be seen. On macOS they can be neither read
	// nor written, whatever else is allowed; SecretPaths that are mounted are not hidden.
	Hidden []string
	// Overlay makes Root writable; what is written is lost.
	Overlay bool
	// Mounts are made in this order, on top of the rest.
	Mounts []Mount
	// Workspace is a directory of the host that is writable inside, under its own
	// absolute path, and where commands start. "" is a private one.
	//
	// What programs of the host would execute later is read-only in it: hooks and
	// settings of git, files that shells, editors, agents and package managers run.
	// Protect says what becomes of such files that do not exist yet.
	Workspace string
	// Protect says what happens to protected paths of the workspace that commands make;
	// "" is ProtectWatch.
	Protect ProtectMode
	// WorkspaceMode says what becomes of what is written to the workspace; "" is
	// WorkspaceDirect.
	WorkspaceMode WorkspaceMode
	// Upper is a directory of the host, on a file system that overlayfs can write
	// to, such as ext4, XFS or Btrfs. WorkspaceOverlay keeps what is written in a
	// new directory there, until Sandbox.Discard, and nothing limits it. "" keeps it
	// in memory, within Limits.Workspace.
	Upper string
	// AllowWrite are paths in the workspace, absolute or relative to it, that are not
	// protected: ".git/config", say, or ".git", or "." for all. With WorkspaceOverlay
	// everything can be changed inside, and Commit refuses what is protected.
	AllowWrite []string
}

// ViewMode is "", "system" or "host".
type ViewMode string

// The views of the host's files.
const (
	// ViewSystem shows the directories of the host's system: programs and libraries.
	ViewSystem ViewMode = "system"
	// ViewHost shows all files that the sandbox's user may read, but SecretPaths and
	// FS.Hidden, for programs that somebody has installed in the home directory. PATH is
	// that of this process. On Linux HOME is the home directory: it can be written to, in
	// memory, within Limits.Tmp. /etc, /dev, /proc, /run and /tmp are as in ViewSystem, and
	// sockets of the host's programs cannot be connected to. For an engine of root's, what
	// is root's in HOME is shown as the guest's, from Linux 5.19 on. It is refused if there
	// are no namespaces. On macOS HOME is private.
	//
	// What is secret and in none of these lists can be read.
	ViewHost ViewMode = "host"
)

// ProtectMode is "", "watch", "strict" or "off".
type ProtectMode string

// The ways to protect a workspace. What exists is read-only in all but ProtectOff.
const (
	// ProtectWatch makes nothing in the workspace. What a program of the host would
	// execute when the directory is merely opened, entered or asked for its status is
	// moved aside as soon as it appears, and at the latest when a command ends; what
	// would be executed only when somebody runs it stays. Result.Held names both. In a
	// directory of git that exists, placeholders stand for what is missing, as with
	// ProtectStrict.
	ProtectWatch ProtectMode = "watch"
	// ProtectStrict keeps protected paths from being made at all: while the sandbox
	// lives an empty placeholder stands in the place of each, on the host as well.
	// Many tools stumble over them.
	ProtectStrict ProtectMode = "strict"
	// ProtectOff protects nothing, as AllowWrite does with ".".
	ProtectOff ProtectMode = "off"
)

// WorkspaceMode is "", "rw" or "overlay".
type WorkspaceMode string

// The modes of a workspace.
const (
	// WorkspaceDirect lets commands write to the directory itself.
	WorkspaceDirect WorkspaceMode = "rw"
	// WorkspaceOverlay lets them write to a layer above it. The directory stays as it
	// is; Sandbox.Changes and Diff tell what would have changed, Commit applies it and
	// Discard drops it. Mounts of the host in the directory are not seen. It needs
	// Linux 5.11, and 6.6 without an Upper.
	WorkspaceOverlay WorkspaceMode = "overlay"
)

// MountType is "", "bind" or "tmpfs"; "" is MountBind.
type MountType string

// The types of a Mount.
const (
	MountBind  MountType = "bind"
	MountTmpfs MountType = "tmpfs"
)

// Mount is one mount of a Spec.
type Mount struct {
	Type     MountType // MountBind or MountTmpfs
	Source   string    // bind: a path of the host, which exists and is not "/"
	Target   string    // inside, absolute
	ReadOnly bool      // bind: not writable
	Size     Bytes     // tmpfs: 0 means Limits.Tmp
	Mode     uint32    // tmpfs: permission bits, 0 means 01777
	NoExec   bool      // tmpfs: no file in it can be executed
}

// normal is the Spec with the paths of the host made absolute and the types of
// mounts filled in.
func (s Spec) normal() Spec {
	abs := func(p *string) {
		if *p == "" || filepath.IsAbs(*p) {
			return
		}
		if at, err := filepath.Abs(*p); err == nil { // without a current directory the relative path is refused
			*p = at
		}
	}
	s = s.clone()
	for _, p := range []*string{&s.FS.Root, &s.FS.Workspace, &s.FS.Upper} {
		abs(p)
	}
	for i := range s.FS.Hidden {
		abs(&s.FS.Hidden[i])
	}
	for i := range s.FS.Mounts {
		m := &s.FS.Mounts[i]
		if m.Type = cmp.Or(m.Type, MountBind); m.Type == MountBind {
			abs(&m.Source)
		}
	}
	return s
}

// Bytes is a number of bytes.
type Bytes int64

// Sizes to multiply with.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// String prints the largest unit that divides b: "64MiB".
func (b Bytes) String() string {
	for _, u := range []struct {
		size Bytes
		name string
	}{{GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Protection names something that a machine may be unable to give.
type Protection string

// The protections that can be listed in Spec.Degrade.
const (
	ProtectMemory  Protection = "memory"  // Limits.MemoryHigh, and Memory where there is no watchdog
	ProtectCPUs    Protection = "cpus"    // Limits.CPUs, CPUWeight and CPUSet
	ProtectIO      Protection = "io"      // Limits.IO
	ProtectSeccomp Protection = "seccomp" // the filter of system calls

	// ProtectNamespaces accepts Landlock and a stricter filter instead, if namespaces
	// are refused: in containers, and where AppArmor restricts them. It needs Linux
	// 6.12. Plan.Dropped lists each thing that is weaker.
	ProtectNamespaces Protection = "namespaces"

	// ProtectIsolation is all of it. It cannot be listed in Spec.Degrade, but stands
	// in Plan.Dropped if Spec.AllowNoIsolation was made use of.
	ProtectIsolation Protection = "isolation"
)

// Protections lists what Spec.Degrade may hold.
func Protections() []Protection {
	return []Protection{ProtectMemory, ProtectCPUs, ProtectIO, ProtectSeccomp, ProtectNamespaces}
}

// clone copies what a caller could change under the plan.
func (s Spec) clone() Spec {
	s.FS.Mounts, s.Env, s.Degrade = slices.Clone(s.FS.Mounts), slices.Clone(s.Env), slices.Clone(s.Degrade)
	s.FS.AllowWrite, s.Limits.IO = slices.Clone(s.FS.AllowWrite), slices.Clone(s.Limits.IO)
	s.Require = slices.Clone(s.Require)
	s.FS.Hidden = slices.Clone(s.FS.Hidden)
	if s.User != nil {
		u := *s.User
		s.User = &u
	}
	return s
}
