package seccomp

import (
	"embed"
	"strconv"
	"strings"
)

// builtin holds the output of go generate: the built-in profiles as BPF, and the
// numbers of system calls.
//
//go:embed builtin
var builtin embed.FS

// calls yields the system calls of an architecture in the order of their numbers.
func calls(goarch string, yield func(name string, nr uint32) bool) {
	text, err := builtin.ReadFile("builtin/calls_" + goarch + ".txt")
	if err != nil {
		return // an unknown architecture
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

// Number returns the number of a system call on a GOARCH, and whether it has one:
// ok is false for an unknown name and for any GOARCH but amd64 and arm64.
func Number(goarch, name string) (nr uint32, ok bool) {
	calls(goarch, func(n string, v uint32) bool {
		nr, ok = v, n == name
		return !ok
	})
	return nr, ok
}

// Name returns the name of a system call on a GOARCH, or "" if the number or the
// GOARCH is unknown.
func Name(goarch string, nr uint32) (name string) {
	calls(goarch, func(n string, v uint32) bool {
		if v == nr {
			name = n
		}
		return name == ""
	})
	return name
}
