// Package holdback moves aside what guests make in a workspace and programs of the
// host would execute: settings of editors and agents, hooks and settings of git.
//
// A [Watcher] looks after the directories in which such a path can appear. What
// appears is moved to a [Store] outside the guest's reach, where people list it,
// restore it or drop it. Nothing is made in the workspace itself, so no tool sees
// anything of it.
//
// inotify(7) only says when to look: each look compares the directory with what may
// not be there, so an event that is lost or late delays a move and never prevents
// it. [Watch.Settle] looks as well, whenever a command has ended.
package holdback
