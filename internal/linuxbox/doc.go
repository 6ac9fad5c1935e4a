//go:build linux && (amd64 || arm64)

// Package linuxbox starts sandboxes on Linux: in namespaces ([Machine]), or, where
// those are refused, confined by Landlock and seccomp alone ([Machine.Landlock]).
//
// It needs Linux 5.14, and 6.12 without namespaces, and runs as root or as a user
// who may create user namespaces. Every process is started by a launch program
// (internal/setup builds them, internal/launch runs them).
package linuxbox
