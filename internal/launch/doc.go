// Package launch starts processes by programs of system calls.
//
// Go cannot run Go code between clone and exec, so a sandbox written in Go usually
// executes itself again to set things up. That costs milliseconds of runtime start,
// and cooperation from the embedding program. Here a start is data. A [Program]
// lists system calls; a loop in assembly executes them in a new process that shares
// this one's memory and uses no stack and no Go code. The last step is an execve.
//
// A failing step leaves its address and errno in that shared memory, so the error
// names it: "mount tmpfs on /tmp: ENOSPC". Each step stamps the cycle counter, so a
// breakdown of the start costs nothing.
//
// Three programs are in assembly as well, and are copied into executables of a few
// hundred bytes: [Pause], which is pid 1 of a sandbox; [Reaper], the parent of a
// command without a pid namespace; and [Gate], the exec shim that each command
// executes first, like the second stage of runc init. With them the assembly is 376
// lines for amd64 and 333 for arm64; the loop over the steps takes about 70 of them.
//
// The package knows nothing of sandboxes: the packages that build programs decide
// which calls make one.
//
// Linux 5.9 or later (clone3 with CLONE_CLEAR_SIGHAND is 5.5, close_range is 5.9),
// amd64 and arm64. It needs no privileges.
package launch
