package engine

import (
	"errors"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/layout"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// privateDir stands for the directory of a sandbox without namespaces, which is
// made when it starts.
const privateDir = "/(private)"

// decideRung finds out whether there have to be, and can be, no namespaces.
func (p *Plan) decideRung(h Host) error {
	if !p.accepts(ProtectNamespaces) || h.TryNamespaces == nil {
		return nil
	}
	why := h.TryNamespaces()
	if why == nil {
		return nil
	}
	if h.Landlock < bareABI || !h.Seccomp {
		return &UnsupportedError{Feature: "a sandbox without namespaces", Since: "6.12", Err: why,
			Remedy: "with an older Landlock a guest could signal processes of the host, and outlive its sandbox"}
	}
	p.bare = true
	for _, lost := range []string{
		"namespaces are refused (" + why.Error() + "); instead:",
		"files: Landlock lets it see the host's system directories, accounts and /proc; /tmp, /dev/shm and mounts elsewhere than at their own path are not there",
		"processes: those of the host can be seen, but neither signalled nor traced",
		"network: no sockets but connected pairs, not even on loopback",
		"ipc: System V and POSIX queues, semaphores and shared memory are refused",
		"limits: pids, tmp and tmpfiles are not limited",
		"protected paths: what the host's tools execute in a workspace can be changed",
	} {
		p.Dropped = append(p.Dropped, Dropped{ProtectNamespaces, lost})
	}
	return p.checkBare(h)
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
	if s.Seccomp.Policy != nil || s.Seccomp.Profile != "" && s.Seccomp.Profile != "strict" {
		no("a seccomp profile but the default or strict")
	}
	return errors.Join(errs...)
}

// bareDirs moves what would be mounts of the sandbox's own to its directory.
func (p *Plan) bareDirs() {
	if p.Spec.FS.Workspace == "" {
		p.Dir = privateDir + rootfs.Workspace
	}
	for i, kv := range p.Env {
		if kv == "HOME=/tmp" || kv == "TMPDIR=/tmp" {
			p.Env[i] = strings.Replace(kv, "/tmp", privateDir+"/tmp", 1)
		}
	}
	var kept layout.Table
	for _, n := range p.table {
		if n.Kind == layout.Bind || n.Kind == layout.Device {
			n.Path = n.Source.Path
			kept = append(kept, n)
		}
	}
	p.table = kept
	p.ghostDirs, p.guards = nil, false // nothing can be mounted on them
	p.hostname = ""
}
