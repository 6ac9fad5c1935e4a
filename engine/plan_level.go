package engine

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"syscall"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/ns"
)

// Level is a level of isolation: what confines the commands of a sandbox. The engine uses
// the best one available.
type Level string

// The levels, the best first.
const (
	// LevelNamespaces is Linux with user namespaces, or root: a view of its own of
	// files, processes and the network, Landlock and a filter of system calls.
	LevelNamespaces Level = "namespaces"
	// LevelLandlock is Linux without namespaces: ProtectNamespaces.
	LevelLandlock Level = "landlock"
	// LevelSeatbelt is macOS: sandbox-exec(1) with a profile made for the Spec.
	LevelSeatbelt Level = "seatbelt"
	// LevelNone confines nothing: Spec.AllowNoIsolation.
	LevelNone Level = "none"
)

// decideLevel finds the best level that there is, and that the Spec accepts.
func (pl *planner) decideLevel() {
	pl.plan.Level = LevelNamespaces
	decide := pl.linuxLevel
	if pl.host.OS != "linux" {
		decide = pl.otherLevel
	}
	why, err := decide()
	pl.fail(err)
	switch pl.plan.Level {
	case LevelNamespaces:
		return
	case LevelNone:
		pl.drop(ProtectIsolation, why+": what runs can do all that this user can, on the whole machine")
	default:
		pl.dropViews(why)
	}
	pl.checkNoNamespaces()
}

// isShort tells a shortage, which a guest can cause, from what a machine does not
// have: only for the latter is a level given up.
func isShort(err error) bool {
	shortages := []error{
		box.ErrShort, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EINTR,
	}
	return slices.ContainsFunc(shortages, func(short error) bool { return errors.Is(err, short) })
}

// linuxLevel decides between those of Linux, and says why it is not the best.
func (pl *planner) linuxLevel() (string, error) {
	h := pl.host
	accepted := pl.accepts(ProtectNamespaces) || pl.spec.AllowNoIsolation
	if !accepted || h.TryNamespaces == nil {
		return "", nil
	}
	why := h.TryNamespaces()
	switch {
	case why == nil:
		return "", nil
	case isShort(why):
		return "", fromBox(why)
	case h.Landlock >= ns.FirstScope && h.Seccomp:
		pl.plan.Level = LevelLandlock
	case pl.spec.AllowNoIsolation:
		pl.plan.Level = LevelNone
	default:
		return "", &UnsupportedError{Feature: "a sandbox without namespaces", Since: "6.12", Err: why,
			Remedy: "with an older Landlock a guest could signal processes of the host, and outlive its sandbox"}
	}
	return "namespaces are refused (" + why.Error() + ")", nil
}

// otherLevel is the same for everything else.
func (pl *planner) otherLevel() (string, error) {
	h := pl.host
	pl.plan.Level = LevelSeatbelt
	if h.OS == "darwin" && (!pl.spec.AllowNoIsolation || h.TrySeatbelt == nil) {
		return "", nil // what fails says so itself
	}
	why := errors.New("this is " + cmp.Or(h.OS, "an unknown system"))
	if h.OS == "darwin" {
		why = h.TrySeatbelt()
	}
	switch {
	case why == nil:
		return "", nil
	case isShort(why):
		return "", fromBox(why)
	case pl.spec.AllowNoIsolation:
		pl.plan.Level = LevelNone
		return why.Error(), nil
	}
	return "", &UnsupportedError{Feature: "isolation on " + h.OS,
		Remedy: "Linux and macOS have it; for development, commands can run without any (allow no isolation)"}
}

// dropViews lists what is weaker than with namespaces.
func (pl *planner) dropViews(why string) {
	drop := func(what Protection, lost ...string) {
		for _, l := range lost {
			pl.drop(what, l)
		}
	}
	if pl.plan.Level == LevelLandlock {
		drop(ProtectNamespaces,
			why+"; instead:",
			"files: Landlock lets it see the host's system directories, accounts and /proc; "+
				"/tmp, /dev/shm and mounts at other paths are missing",
			"processes: the host's are visible but cannot be signalled or traced",
			"network: no sockets except connected pairs, not even on loopback",
			"ipc: System V and POSIX queues, semaphores and shared memory are refused",
			"limits: pids, tmp and tmpfiles are not limited",
			"protected paths: what the host's tools execute in a workspace can be changed")
		return
	}
	drop(ProtectNamespaces,
		"macOS has no namespaces; a Seatbelt profile instead:",
		"files: those of the system and what is bound are seen at their own paths; /tmp is refused, TMPDIR is private",
		"processes: those of the host can be neither signalled nor looked into; "+
			"one that leaves its process group in a moment can outlive its sandbox",
		"network: none, not even on loopback",
		"ipc: semaphores /mp-* and shared memory /psm_* are every program's, as Python needs them",
		"limits: tmp and tmpfiles are not limited, and of processes the threads are not counted")
	drop(ProtectSeccomp, "macOS has no filters of system calls")
	if pl.spec.Seccomp.NoExec {
		drop(ProtectSeccomp, "no exec: /bin/bash and /usr/bin/env can be executed as well: they start the program")
	}
}

// checkNoNamespaces refuses what needs a view of its own.
func (pl *planner) checkNoNamespaces() {
	s, h := pl.spec, pl.host
	no := func(field, what string) {
		pl.fail(&UnsupportedError{Feature: what + " without namespaces", Field: field})
	}
	if pl.overlaid() {
		no("fs.workspace_mode", "an overlay over the workspace")
	}
	if s.FS.View == ViewHost && pl.plan.Level == LevelLandlock {
		no("fs.view", "hiding secrets in the view of the host")
	}
	if s.FS.Root != "" {
		no("fs.root", "a root directory")
	}
	if s.Hostname != "" {
		no("hostname", "a host name")
	}
	if s.User != nil && (s.User.UID != h.UID || s.User.GID != h.GID || h.Become) {
		no("user", "another user")
	}
	for i, m := range s.FS.Mounts {
		if m.Type != MountBind || strings.TrimRight(m.Source, "/") != strings.TrimRight(m.Target, "/") {
			no(at("fs.mounts", i), "the mount at "+m.Target)
		}
	}
	if pl.plan.Level == LevelNone {
		return // filters are not to be expected there
	}
	strict := s.Seccomp.Profile == "strict" && !pl.usesProcessGroups()
	if s.Seccomp.Policy != nil || s.Seccomp.Profile != "" && s.Seccomp.Profile != "default" && !strict {
		no("seccomp", "this seccomp profile")
	}
	if pl.usesProcessGroups() && s.Seccomp.Audit {
		no("seccomp.audit", "an audit of system calls")
	}
}
