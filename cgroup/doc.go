// Package cgroup bounds and measures sandboxes by cgroup v2: the kernel's
// documentation, admin-guide/cgroup-v2, is the source of what is said here, with
// the first kernel where that is later than 5.14.
//
// Find looks where this process may make cgroups, Scope has systemd make such a
// place, Place.Open prepares it, and Parent.New makes a cgroup for a sandbox. What
// stays in version 1 is not written: its limits can neither be delegated nor be
// entered by clone3.
//
// This is a package of its own and not github.com/containerd/cgroups, which with
// what it imports (eBPF, D-Bus, protocol buffers and, by these, package net)
// makes a program 5 MB larger and costs each start half a millisecond, for some
// files to be written and read.
package cgroup
