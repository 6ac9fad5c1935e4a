package engine

import (
	"errors"
	"slices"
	"strings"
	"syscall"
)

// Level is a rung of the ladder of isolation: what confines the commands of a
// sandbox. The best that a machine has is taken.
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

// bare tells whether the sandbox has no view of its own of files.
func (p *Plan) bare() bool { return p.Level != LevelNamespaces }

// plain tells whether the sandbox has nothing that Linux alone has: it is a
// directory, and process groups. On Linux that is so without isolation: what ends
// the processes of LevelLandlock is safe only where Landlock keeps its signals in.
func (p *Plan) plain() bool { return p.system != "linux" || p.Level == LevelNone }

// decideLevel finds the best level that there is, and that the Spec accepts.
func (p *Plan) decideLevel(h Host) error {
	p.Level, p.system = LevelNamespaces, h.OS
	decide := p.linuxLevel
	if h.OS != "linux" {
		decide = p.otherLevel
	}
	why, err := decide(h)
	if s := p.Spec.Seatbelt; h.OS != "darwin" && (s.ReadAll || s.Hidden != nil) {
		err = errors.Join(err, &UnsupportedError{Feature: "to read all, or to hide paths, on " + h.OS, Remedy: "only macOS has that; elsewhere a sandbox sees what is mounted"})
	}
	switch p.Level {
	case LevelNamespaces:
		return err
	case LevelNone:
		p.Dropped = append(p.Dropped, Dropped{ProtectIsolation, "there is none, since " + why + ": what runs can do all that this user can, on the whole machine"})
	default:
		p.dropViews(why)
	}
	return errors.Join(err, p.checkBare(h))
}

// errShort is something that a machine has, and has run out of.
var errShort = errors.New("short of resources")

// isShort tells a shortage, which a guest can bring about, from what a machine
// does not have: only for that is a level given up.
func isShort(err error) bool {
	for _, short := range []error{errShort, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EINTR} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}

// linuxLevel decides between those of Linux, and says why it is not the best.
func (p *Plan) linuxLevel(h Host) (string, error) {
	accepted := p.accepts(ProtectNamespaces) || p.Spec.AllowNoIsolation
	if !accepted || h.TryNamespaces == nil {
		return "", nil
	}
	why := h.TryNamespaces()
	switch {
	case why == nil:
		return "", nil
	case isShort(why):
		return "", why
	case h.Landlock >= bareABI && h.Seccomp:
		p.Level = LevelLandlock
	case p.Spec.AllowNoIsolation:
		p.Level = LevelNone
	default:
		return "", &UnsupportedError{Feature: "a sandbox without namespaces", Since: "6.12", Err: why,
			Remedy: "with an older Landlock a guest could signal processes of the host, and outlive its sandbox"}
	}
	return "namespaces are refused (" + why.Error() + ")", nil
}

// otherLevel is the same for everything else.
func (p *Plan) otherLevel(h Host) (string, error) {
	p.Level = LevelSeatbelt
	if h.OS == "darwin" && (!p.Spec.AllowNoIsolation || h.TrySeatbelt == nil) {
		return "", nil // what fails says so itself
	}
	why := errors.New("this is " + orDefault(h.OS, "an unknown system"))
	if h.OS == "darwin" {
		why = h.TrySeatbelt()
	}
	switch {
	case why == nil:
		return "", nil
	case isShort(why):
		return "", why
	case p.Spec.AllowNoIsolation:
		p.Level = LevelNone
		return why.Error(), nil
	}
	return "", &UnsupportedError{Feature: "isolation on " + h.OS,
		Remedy: "Linux and macOS have it; for development, commands can run without any (allow no isolation)"}
}

// dropViews lists what is weaker than with namespaces.
func (p *Plan) dropViews(why string) {
	drop := func(what Protection, lost ...string) {
		for _, l := range lost {
			p.Dropped = append(p.Dropped, Dropped{what, l})
		}
	}
	if p.Level == LevelLandlock {
		drop(ProtectNamespaces,
			why+"; instead:",
			"files: Landlock lets it see the host's system directories, accounts and /proc; /tmp, /dev/shm and mounts elsewhere than at their own path are not there",
			"processes: those of the host can be seen, but neither signalled nor traced",
			"network: no sockets but connected pairs, not even on loopback",
			"ipc: System V and POSIX queues, semaphores and shared memory are refused",
			"limits: pids, tmp and tmpfiles are not limited",
			"protected paths: what the host's tools execute in a workspace can be changed")
		return
	}
	drop(ProtectNamespaces,
		"macOS has no namespaces; a Seatbelt profile instead:",
		"files: those of the system and what is bound are seen at their own paths; /tmp is refused, TMPDIR is private",
		"processes: those of the host can be neither signalled nor looked into; one that leaves its process group in a moment can outlive its sandbox",
		"network: none, not even on loopback",
		"ipc: semaphores /mp-* and shared memory /psm_* are every program's, as Python needs them",
		"limits: tmp and tmpfiles are not limited, and of processes the threads are not counted")
	drop(ProtectSeccomp, "macOS has no filters of system calls")
	if p.Spec.Seccomp.NoExec {
		drop(ProtectSeccomp, "no exec: /bin/bash and /usr/bin/env can be executed, too, as they start the program")
	}
}

func (p *Plan) accepts(what Protection) bool {
	return slices.Contains(p.Spec.Degrade, what)
}

// checkBare refuses what takes a view of its own.
func (p *Plan) checkBare(h Host) error {
	s := p.Spec
	var errs []error
	no := func(what string) {
		errs = append(errs, &UnsupportedError{Feature: what + " without namespaces"})
	}
	if p.overlaid() {
		no("an overlay over the workspace")
	}
	if s.FS.Root != "" {
		no("a root directory")
	}
	if s.Hostname != "" {
		no("a host name")
	}
	if s.User != nil && (s.User.UID != h.UID || s.User.GID != h.GID || h.Become) {
		no("another user")
	}
	for _, m := range s.FS.Mounts {
		if m.Type != MountBind || strings.TrimRight(m.Source, "/") != strings.TrimRight(m.Target, "/") {
			no("the mount at " + m.Target)
		}
	}
	if p.Level == LevelNone {
		return errors.Join(errs...) // filters are not to be expected there
	}
	strict := s.Seccomp.Profile == "strict" && !p.plain()
	if s.Seccomp.Policy != nil || s.Seccomp.Profile != "" && s.Seccomp.Profile != "default" && !strict {
		no("this seccomp profile")
	}
	if p.plain() && s.Seccomp.Audit {
		no("an audit of system calls")
	}
	return errors.Join(errs...)
}
