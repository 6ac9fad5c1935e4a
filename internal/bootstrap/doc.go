// Package bootstrap starts code in a sandbox: it turns Python, JavaScript or shell
// code into a command line for the interpreter, with the sources of a client that
// calls tools. That client is the other end of internal/wire; the comment of
// package broker has the protocol.
//
// The same sources run on Linux and macOS, and probe for what they need. macOS has
// no /proc, which matters in three places:
//
//   - A shell script needs Script.Dir: its texts and its lock are files there instead
//     of descriptors, since /dev/fd of macOS duplicates a descriptor, where
//     /proc/self/fd opens the file anew (fdesc in xnu: same offset, no more rights).
//   - Each request of a shell script costs a process, by which a subshell learns its
//     own process ID.
//   - If ps must not run, a shell script that is killed during a call blocks the
//     others until its parent waits for it. ps of macOS is setuid, which sandbox-exec
//     refuses.
//
// macOS honours MSG_DONTWAIT on receive but not on send (sosendcheck in xnu), so there
// Python makes the channel non-blocking at the first call from an event loop.
package bootstrap
