package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/seccomp"
)

// Seccomp says which system calls commands may make. The zero value is the
// profile "default".
type Seccomp struct {
	// Profile is the name of a built-in one: "default", "strict" (no sockets,
	// little else), "debug" (default, and ptrace), or "off". "" is "default".
	Profile string
	// Policy is used instead of a profile, which has to be "" then. It takes a build with
	// libseccomp; elsewhere Compile returns seccomp.ErrNoCompiler.
	Policy *seccomp.Policy
	// NoExec lets a command execute its own program and nothing after it.
	NoExec bool
	// Audit lists in Result.Refused what a command was refused, so that a policy
	// can be written for it. Each refusal then goes through this process, and
	// what would kill a process is a SIGSYS that it can catch.
	Audit bool
}

// SeccompOff is the Profile for no filter at all: the kernel's whole system call
// interface is open to the guest.
const SeccompOff = "off"

// Refusal is a system call that a command was refused, by Seccomp.Audit.
type Refusal struct {
	Call   string // "mount"; "unknown", where it has no name
	Action string // what it got: "EPERM", "kill"
	Count  int
}

func checkSeccomp(s Spec) error {
	c := s.Seccomp
	var errs []error
	if c.Policy != nil {
		if c.Profile != "" {
			errs = append(errs, invalid("seccomp: a profile and a policy of one's own: want one of them"))
		}
		if err := c.Policy.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrInvalid, err))
		}
	}
	if c.Profile != "" && c.Profile != SeccompOff && seccomp.Lookup(c.Profile) == nil {
		errs = append(errs, invalid("seccomp profile %q: there are %s and %s", c.Profile, strings.Join(seccomp.Names(), ", "), SeccompOff))
	}
	if c.Profile == SeccompOff && (c.NoExec || c.Audit) {
		errs = append(errs, invalid("seccomp is off: then nothing can be audited or kept from being executed"))
	}
	return errors.Join(errs...)
}

// decideSeccomp makes the filter.
func (p *Plan) decideSeccomp(h Host) error {
	c := p.Spec.Seccomp
	if c.Profile == SeccompOff || p.plain() {
		return nil
	}
	if !h.Seccomp {
		if p.drop(ProtectSeccomp, "this kernel has no seccomp filters") {
			return nil
		}
		return &UnsupportedError{Feature: "seccomp filters", Since: "4.14", Remedy: "the kernel needs CONFIG_SECCOMP_FILTER; or accept to run without (degrade seccomp)"}
	}
	var err error
	if c.Policy != nil {
		p.filter, err = seccomp.Compile(c.Policy, h.Arch, h.Kernel)
		if errors.Is(err, seccomp.ErrNoCompiler) {
			return &UnsupportedError{Feature: "a seccomp policy of one's own", Err: err}
		}
		p.profile = "policy"
		if err == nil {
			err = p.checkPolicy(h.Arch)
		}
	} else {
		p.profile = orDefault(c.Profile, "default")
		if p.bare() && p.profile == "default" {
			p.profile = "shared"
		}
		p.filter, err = seccomp.Builtin(p.profile, h.Arch)
		if p.bare() && p.profile != "shared" && err == nil {
			// The others leave calls that Landlock does not look at.
			p.profile += " and shared"
			p.filter, err = p.filter.And("shared", h.Arch)
		}
	}
	if err != nil && !errors.Is(err, ErrInvalid) {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}

// checkPolicy refuses a policy that refuses what the start of a command itself
// needs, after the filter has been installed. The built-in profiles do not.
func (p *Plan) checkPolicy(goarch string) error {
	var missing []string
	needed := append([]string{"execveat"}, startCalls()...)
	if p.Spec.Seccomp.Audit {
		needed = append(needed, "sendmsg")
	}
	for _, name := range needed {
		nr, _ := seccomp.Number(goarch, name) // all are known
		a := p.filter.Decide(seccomp.Call{Arch: seccomp.AuditArch(goarch), Nr: nr})
		if a.Kind != seccomp.Allow && a.Kind != seccomp.Log && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return invalid("seccomp policy: a command cannot be started without %s, which it refuses", strings.Join(missing, ", "))
	}
	return nil
}

// drop gives a protection up, if the Spec accepts that.
func (p *Plan) drop(what Protection, why string) bool {
	if !p.accepts(what) {
		return false
	}
	p.Dropped = append(p.Dropped, Dropped{what, why})
	return true
}

// FilterLen is the number of instructions of the plan's seccomp filter; 0
// without one.
func (p *Plan) FilterLen() int { return len(p.filter) }

// confinement prints what a Plan decided about system calls and files.
func (p *Plan) confinement() string {
	var b strings.Builder
	switch p.Level {
	case LevelNone:
		return ""
	case LevelSeatbelt:
		return p.seatbeltText()
	}
	if p.filter == nil {
		b.WriteString("seccomp  off\n")
	} else {
		fmt.Fprintf(&b, "seccomp  %s (%d instructions)", p.profile, len(p.filter))
		if p.Spec.Seccomp.NoExec {
			b.WriteString(", nothing else is executed")
		}
		if p.Spec.Seccomp.Audit {
			b.WriteString(", refusals are listed")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "landlock %s\n", p.landlock.note)
	return b.String()
}
