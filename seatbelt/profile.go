package seatbelt

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is wrapped by every error of New.
var ErrInvalid = errors.New("invalid seatbelt configuration")

// Path is a file of the host, or a directory with everything beneath it.
type Path struct {
	Name string // absolute and clean, with symbolic links resolved: rules see real paths
	Dir  bool   // it is a directory, and everything beneath is meant
}

// Config says what a sandbox may do beyond what every program needs: start and signal
// its own processes, use the programs and libraries of the system and of Homebrew, and
// use devices such as /dev/null. The zero Config allows only that: no network, no
// writing, and no access to users' files.
//
// All names must be absolute, clean, valid UTF-8 and not "/"; Read and Write do not
// accept /dev as a whole. Resolve symbolic links first: a secret that can be reached
// through a link needs both names in Hidden. Where paths overlap, Write overrides Read,
// Keep and Pin override Write, and Hidden overrides everything.
type Config struct {
	Read  []Path // can be read, listed, mapped and executed
	Write []Path // like Read, and can be written; the paths themselves cannot be renamed or removed

	// Keep lists trees and files in Write that stay unchanged, whether they exist or
	// not: they cannot be written, created, renamed, removed or linked. The directories
	// between them and their root in Write are pinned.
	Keep []string

	// Pin lists directories in Write that cannot be renamed, removed or replaced, nor
	// created if they are missing. It does not affect their contents.
	Pin []string

	// ReadAll allows everything except devices and Hidden to be read, mapped and
	// executed. It is weaker than Read and meant for compatibility.
	ReadAll bool

	// Hidden lists trees and files that cannot be read, inspected, executed or written,
	// whatever the other fields say. Secrets returns a default to use with ReadAll. The
	// directories above them in Write are pinned.
	Hidden []string

	// Ports lists the TCP ports of localhost, 1 to 65535, that can be connected to. If it
	// is empty, there is no network and Unix sockets cannot be connected to. A socket
	// that is connected when the sandbox starts works in any case.
	Ports []int

	// Program, if set, is the only program besides Launcher that can be executed, by
	// sandbox-exec and by any process inside. It can be read, and is kept.
	Program string

	// Launcher lists programs that only start the command, such as /bin/sh. They can be
	// executed and read, and are kept, whether Program is set or not.
	Launcher []string

	// Terminal gives the sandbox access to its terminal. It must be one created for it:
	// a process that can use ioctl on a terminal can inject input into it (TIOCSTI).
	Terminal bool
}

// Profile is a Config in the language of Seatbelt. It is immutable and safe for
// concurrent use.
type Profile struct {
	text   string
	params []string
}

// maxArgs bounds the size of Args in bytes: execve(2) has 1 MiB for arguments and
// environment, which the command shares.
const maxArgs = 256 << 10

// New returns the profile for c. The error wraps ErrInvalid and joins all problems of
// c. New does not look at the disk: the caller makes sure that names are real paths and
// that Dir is set for directories.
func New(c Config) (*Profile, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	b := builder{config: c}
	p := &Profile{text: render(b.rules())}
	order := func(x, y string) int { return p.first(x) - p.first(y) }
	p.params = slices.SortedStableFunc(slices.Values(b.params), order)
	size := 0
	for _, arg := range p.Args() {
		size += len(arg) + 1
	}
	if size > maxArgs {
		return nil, fmt.Errorf("%w: the profile takes %d bytes, more than %d", ErrInvalid, size, maxArgs)
	}
	return p, nil
}

// String returns the profile's text. It depends only on the Config and contains no
// path of it: paths are parameters, so that none can be read as SBPL.
func (p *Profile) String() string { return p.text }

// Params returns a copy of the text's parameters, each as "KEY=value", in the order in
// which the text first uses them.
func (p *Profile) Params() []string { return slices.Clone(p.params) }

// first returns where the text first uses a parameter.
func (p *Profile) first(param string) int {
	key, _, _ := strings.Cut(param, "=")
	return strings.Index(p.text, "(param "+quote(key)+")")
}

// Args returns the arguments of sandbox-exec(1) that come before the command.
func (p *Profile) Args() []string {
	args := []string{"-p", p.text}
	for _, param := range p.params {
		args = append(args, "-D", param)
	}
	return args
}

func (c Config) validate() error {
	var errs []error
	check := func(field, name string) {
		if wrong := wrongName(name); wrong != "" {
			errs = append(errs, fmt.Errorf("%w: %s: %.80q is %s", ErrInvalid, field, name, wrong))
		}
	}
	for _, list := range []struct {
		field string
		paths []Path
	}{{"Read", c.Read}, {"Write", c.Write}} {
		for _, p := range list.paths {
			check(list.field, p.Name)
			if p.Name == "/dev" {
				errs = append(errs, fmt.Errorf("%w: %s: /dev contains every terminal and disk", ErrInvalid, list.field))
			}
		}
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"Keep", c.Keep}, {"Pin", c.Pin}, {"Hidden", c.Hidden}, {"Launcher", c.Launcher}} {
		for _, name := range list.names {
			check(list.field, name)
		}
	}
	if c.Program != "" {
		check("Program", c.Program)
	}
	for _, port := range c.Ports {
		if port < 1 || port > 65535 {
			errs = append(errs, fmt.Errorf("%w: Ports: %d is not a port", ErrInvalid, port))
		}
	}
	return errors.Join(errs...)
}

// wrongName returns what is wrong with a path, or "". File systems of macOS accept only
// UTF-8, and "/" would include all devices.
func wrongName(name string) string {
	switch {
	case strings.ContainsRune(name, 0):
		return "a name with a NUL byte"
	case !path.IsAbs(name):
		return "not absolute"
	case path.Clean(name) != name:
		return "not clean"
	case name == "/":
		return "everything"
	case !utf8.ValidString(name):
		return "not UTF-8"
	}
	return ""
}
