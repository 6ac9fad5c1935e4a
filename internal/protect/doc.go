// Package protect decides which paths of a workspace a guest must not change or
// make, since programs on the host execute them or let them decide what to
// execute: hooks and settings of git, files that shells, editors, agents and
// package managers run.
//
// [Decide] is pure: it looks at the host only through the functions it is given,
// and returns mounts and placeholders as data. What exists is mounted read-only on
// itself. A protected path that does not exist gets a placeholder: for the life of
// the sandbox it exists on the host, empty, so that something can be mounted on
// it. [Held] makes and removes placeholders on disk; only Linux has it.
package protect
