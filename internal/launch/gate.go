//go:build linux && (amd64 || arm64)

package launch

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Gate returns the program that every command executes first, in a memfd. It has
// nothing of the host's in memory, so only the gate accepts signals and follows a
// path that a guest has a say in. The process before it shares the host's memory: a
// signal could have that memory dumped, and its /proc/self/exe is the host's own
// executable (the attack of CVE-2019-5736).
//
// GateArgs makes its arguments. If nothing can be executed, the gate writes the
// errno, 8 bytes, to the report descriptor; otherwise the execve closes that. The
// caller closes the file.
//
// A filter that is in force already must allow GateCalls.
func Gate() (*os.File, error) { return sealed("tegmen-gate", gateCode()) }

// A Cookie is passed as the fourth argument of the gate's execve, which the kernel
// ignores. A guest cannot know it, so a seccomp filter can allow that execve and no
// other. No byte of it is 0, except in the zero Cookie, which means none.
type Cookie [8]byte

// NewCookie returns a random cookie.
func NewCookie() (c Cookie, err error) {
	if _, err := unix.Getrandom(c[:], 0); err != nil {
		return c, fmt.Errorf("getrandom: %w", err)
	}
	for i := range c {
		c[i] = max(c[i], 1)
	}
	return c, nil
}

// Arg returns the cookie as an argument of a system call.
func (c Cookie) Arg() uint64 { return binary.LittleEndian.Uint64(c[:]) }

// GateArgs returns the argument vector of a gate. The gate makes itself the
// kernel's first choice to kill when memory runs out, executes the first of paths
// that exists, with the arguments argv, and reports through reportFD, which is from
// 1 to 255.
func GateArgs(reportFD int, paths, argv []string) []string {
	head := []string{string([]byte{byte(reportFD)}), "/proc/self/oom_score_adj", "1000"}
	return slices.Concat(head, paths, []string{""}, argv)
}

// GateEnv returns the environment of a gate that executes a command with env. It
// carries the cookie, which must not be among the arguments: anyone may read those
// in /proc, but only a process that may trace this one can read its environment.
// Zero bytes of the cookie become 1, since an environment cannot hold them.
func GateEnv(cookie Cookie, env []string) []string {
	for i := range cookie {
		cookie[i] = max(cookie[i], 1)
	}
	return append([]string{string(cookie[:])}, env...)
}
