// Package setup builds the launch programs that set up sandboxes and the commands
// in them: namespaces, id maps, mounts, privileges. It starts nothing.
//
// A sandbox takes three programs. [NewTemplate] prepares the part of the file tree
// that all sandboxes of a kind share, in namespaces that are kept as descriptors.
// [From] makes one sandbox from a template, and [Direct] makes one from nothing;
// either becomes pid 1. [Enter] puts a command into the sandbox. Without
// namespaces, [LandlockOnly] starts a command that Landlock alone confines.
//
// Linux 5.14 or later (mount_setattr is 5.12, RLIMIT_NPROC counts by user
// namespace from 5.14), as root or as a user who may create user namespaces.
// LandlockOnly needs Linux 6.12 and no privileges.
package setup
