package seatbelt

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is what every error of New is: a Config that cannot be.
var ErrInvalid = errors.New("invalid seatbelt configuration")

// Path is a file of the host, or a directory with everything beneath it.
type Path struct {
	Name string // absolute and clean, symbolic links resolved: rules see real paths
	Dir  bool
}

// Config says what a sandbox may do beyond what every program needs: its own
// processes, the system's programs and libraries and those of Homebrew, and
// devices such as /dev/null. The zero Config allows just that: no network, nothing
// written, no file of a user read.
//
// All names are absolute, clean, UTF-8 and not "/"; Read and Write do not take all
// of /dev either. They should have their symbolic links resolved: a secret that is
// reached through a link needs both names in Hidden. Where paths overlap, Write
// beats Read, Keep and Pin beat Write, and Hidden beats everything.
type Config struct {
	Read  []Path // can be read, listed, mapped and executed
	Write []Path // also written to; what stands there can itself be neither renamed nor removed

	// Keep are trees and files in Write that stay as they are, whether they exist
	// or not: not written, made, renamed, removed or linked to. The directories
	// between them and the root in Write are pinned.
	Keep []string

	// Pin are directories in Write that can be neither renamed nor removed nor
	// replaced, nor made if they are missing. What is in them is not concerned.
	Pin []string

	// ReadAll lets everything be read, mapped and executed that is not Hidden,
	// except devices. It is for compatibility, and the weaker setting.
	ReadAll bool

	// Hidden are trees and files that can be neither read, looked at, executed nor
	// written, whatever else is said, with ReadAll or without. Secrets has a
	// default for ReadAll. The directories above them in Write are pinned.
	Hidden []string

	// Ports are TCP ports of localhost, 1 to 65535, that can be connected to. None:
	// no network at all, no sockets in files either. A socket that is connected
	// already when the sandbox starts works in any case.
	Ports []int

	// Program, if set, is the only thing besides Launcher that can be executed, by
	// sandbox-exec as by any process within. It can be read, and is kept.
	Program string

	// Launcher are programs that only start the command, such as /bin/sh. They can
	// be executed and read, and are kept, with Program and without.
	Launcher []string

	// Terminal says that the sandbox gets a terminal: one that was made for it, since
	// whoever can use ioctl on a terminal can also put input into it (TIOCSTI).
	Terminal bool
}

// Profile is a Config in the language of Seatbelt. It does not change; all
// methods are safe for concurrent use.
type Profile struct {
	text   string
	params []string
}

// maxArgs bounds what Args takes up, in bytes: execve(2) has 1 MiB for arguments
// and environment, and the command has to fit as well.
const maxArgs = 256 << 10

// New is the profile for c. Its error tells everything that is wrong with c and
// is ErrInvalid. Nothing is looked up: that the names are real paths, and where
// Dir is set directories, is for the caller to see to.
func New(c Config) (*Profile, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	b := builder{config: c}
	p := &Profile{text: render(b.rules())}
	p.params = slices.SortedStableFunc(slices.Values(b.params), func(x, y string) int { return p.first(x) - p.first(y) })
	size := 0
	for _, arg := range p.Args() {
		size += len(arg) + 1
	}
	if size > maxArgs {
		return nil, fmt.Errorf("%w: the profile takes %d bytes, more than %d", ErrInvalid, size, maxArgs)
	}
	return p, nil
}

// String is the profile's text. The same Config has the same text, and no path of
// it is in there: these are parameters.
func (p *Profile) String() string { return p.text }

// Params are the parameters of the text, each "KEY=value", in the order in which
// the text first names them.
func (p *Profile) Params() []string { return slices.Clone(p.params) }

// first is where the text names a parameter first.
func (p *Profile) first(param string) int {
	key, _, _ := strings.Cut(param, "=")
	return strings.Index(p.text, "(param "+quote(key)+")")
}

// Args are the arguments of sandbox-exec(1) that come before the command.
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
				errs = append(errs, fmt.Errorf("%w: %s: /dev is every terminal and disk", ErrInvalid, list.field))
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

// wrongName says what is wrong with a path. File systems of macOS take no names
// but UTF-8, and "/" would be all devices, too.
func wrongName(name string) string {
	switch {
	case strings.ContainsRune(name, 0):
		return "with a NUL byte"
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
