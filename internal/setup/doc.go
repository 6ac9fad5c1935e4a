// Package setup builds the launch programs that set up sandboxes and the commands
// in them: namespaces, id maps, mounts, privileges. It starts nothing.
//
// Three programs make a sandbox. Template prepares the part of the file tree
// that all sandboxes of a kind share, in namespaces that are kept as
// descriptors. Init makes one sandbox, from a template or from nothing, and
// becomes its pid 1. Enter puts a command into it.
//
// Linux 5.14 or later (mount_setattr is 5.12, RLIMIT_NPROC counts by user
// namespace from 5.14), by root or by a user who may create user namespaces.
package setup
