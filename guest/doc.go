// Package guest is what runs inside a sandbox on behalf of the engine: the
// bootstraps that interpreters are started with, and Client for programs written
// in Go. It is the other side of package broker, whose comment has the wire.
//
// A program in Go that calls a tool and returns what it makes of the answer:
//
//	c, err := guest.Dial()
//	if err != nil {
//		return err
//	}
//	var rows []string
//	if err := c.Call(ctx, "db.query", map[string]any{"sql": "…"}, &rows); err != nil {
//		return c.Fail(err)
//	}
//	return c.Result(len(rows))
//
// The same texts run on Linux and on macOS, and go by what is there. Without /proc,
// which macOS has not:
//
//   - A shell script needs Script.Dir. Its texts and its lock are files there
//     instead of descriptors, for /dev/fd of macOS duplicates a descriptor where
//     /proc/self/fd opens its file again (fdesc of xnu: the same place in the file,
//     no more rights).
//   - Each request of a shell script costs a process, which tells a subshell its own
//     number.
//   - A shell script that was killed during a call, and whose parent has not waited
//     for it, holds up the others until then, if ps may not be run. That of macOS is
//     setuid, which sandbox-exec refuses.
//
// The kernel of macOS heeds MSG_DONTWAIT when it receives, but not when it sends
// (sosendcheck of xnu), so Python makes the channel nonblocking there as soon as an
// event loop calls.
package guest
