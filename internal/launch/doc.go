// Package launch starts processes by programs of system calls.
//
// Go cannot run Go code between clone and exec, so a sandbox written in Go
// usually executes itself again to set things up: milliseconds of runtime
// start, and cooperation from the embedding program. Here a start is data. A
// [Program] lists system calls; a few lines of assembly execute them in a new
// process that shares this one's memory and uses no stack and no Go code. The
// last step is an execve.
//
// A failing step leaves its address and errno in that shared memory, so the
// error names it: "mount tmpfs on /tmp: ENOSPC". Each step stamps the cycle
// counter, so a breakdown of the start costs nothing.
//
// The package knows nothing of sandboxes: which calls make one is decided by
// the packages that build programs.
//
// Linux 5.9 or later (clone3 with CLONE_CLEAR_SIGHAND is 5.5, close_range is
// 5.9), amd64 and arm64. No privileges of its own.
package launch
