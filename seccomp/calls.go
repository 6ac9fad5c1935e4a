package seccomp

import (
	"embed"
	"strconv"
	"strings"
)

// builtin holds what go generate makes: the built-in profiles as BPF, and the
// numbers of system calls.
//
//go:embed builtin
var builtin embed.FS

// calls yields the system calls of an architecture, by number.
func calls(goarch string, yield func(name string, nr uint32) bool) {
	text, err := builtin.ReadFile("builtin/calls_" + goarch + ".txt")
	if err != nil {
		return // an architecture that has none
	}
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		nr, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			panic("seccomp: " + line)
		}
		if !yield(name, uint32(nr)) {
			return
		}
	}
}

// Number is the number of a system call on an architecture.
func Number(goarch, name string) (nr uint32, ok bool) {
	calls(goarch, func(n string, v uint32) bool {
		nr, ok = v, n == name
		return !ok
	})
	return nr, ok
}

// Name is the name of a system call, or "" where it has none.
func Name(goarch string, nr uint32) (name string) {
	calls(goarch, func(n string, v uint32) bool {
		if v == nr {
			name = n
		}
		return name == ""
	})
	return name
}
