// Package cgroup limits and measures sandboxes with cgroup v2, as documented in the
// kernel's admin-guide/cgroup-v2. It needs Linux 5.14; comments name the first kernel
// of what came later. The process needs a cgroup delegated to it, or root.
//
// Find looks for a directory in which this process may create cgroups, Scope asks
// systemd for one, Place.Open prepares it, and Parent.New creates a cgroup for a
// sandbox:
//
//	place := cgroup.Find()
//	if !place.Has("memory", "pids") {
//		return errors.New(place.Reason)
//	}
//	parent, err := place.Open(false) // may move this process: see Place.Leave
//	group, err := parent.New(cgroup.Settings{Memory: 512 << 20, Pids: 64})
//
// Controllers mounted as cgroup v1 are not supported: their limits cannot be
// delegated, and clone3 cannot start a process in such a cgroup.
//
// github.com/containerd/cgroups is not used: with its imports (eBPF, D-Bus, protocol
// buffers and through these package net) it makes a program 5 MB larger and adds half
// a millisecond to each start, to write and read a few files.
package cgroup
