//go:build darwin || (linux && (amd64 || arm64))

// Package procbox starts sandboxes on any Unix: commands are child processes in
// sessions of their own, confined by sandbox-exec(1) where there is a Seatbelt
// profile, and by nothing otherwise. A sandbox is the descendants of its
// commands, and a private directory.
//
// It is the way on macOS, and for commands without isolation everywhere. On Linux
// it needs nothing but /proc, so that what macOS has can be tested there with a
// stand-in for sandbox-exec.
package procbox
