package engine

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// Seccomp says which system calls commands may make. The zero value is the
// profile "default".
type Seccomp struct {
	// Profile is the name of a built-in one: "default", "strict" (no sockets,
	// little else), "debug" (default, and ptrace), or "off". "" is "default".
	Profile string
	// Policy is used instead of a Profile, which must be "" then. It needs a build
	// with libseccomp; elsewhere Compile returns seccomp.ErrNoCompiler.
	Policy *seccomp.Policy
	// NoExec lets a command execute its own program and nothing after it.
	NoExec bool
	// Audit lists refused system calls in Result.Refused, so that a policy can be
	// written for a program. Each refusal then goes through this process, and a call
	// that would kill the program raises a SIGSYS that it can catch.
	Audit bool
}

// SeccompOff is the Profile for no filter at all: the kernel's whole system call
// interface is open to the guest.
const SeccompOff = "off"

// Refusal is a system call that was refused, as Seccomp.Audit lists it.
type Refusal struct {
	Call   string // "mount"; "unknown" if it has no name
	Action string // what the command got: "EPERM", "kill"
	Count  int    // how often
}

func checkSeccomp(s Spec) (errs []error) {
	c := s.Seccomp
	if c.Policy != nil {
		if c.Profile != "" {
			errs = append(errs, invalidField("seccomp", "", "Profile and Policy are mutually exclusive"))
		}
		if err := c.Policy.Validate(); err != nil {
			errs = append(errs, invalidBecause("", err))
		}
	}
	if c.Profile != "" && c.Profile != SeccompOff && seccomp.Lookup(c.Profile) == nil {
		errs = append(errs, invalidField("seccomp.profile", quoted(c.Profile), "want %s or %s",
			strings.Join(seccomp.Names(), ", "), SeccompOff))
	}
	if c.Profile == SeccompOff && (c.NoExec || c.Audit) {
		errs = append(errs, invalidField("seccomp.profile", SeccompOff,
			"NoExec and Audit need a filter"))
	}
	return errs
}

// decideSeccomp makes the filter.
func (pl *planner) decideSeccomp() {
	c := pl.spec.Seccomp
	pl.config.NoExec, pl.config.Audit = c.NoExec, c.Audit
	if pl.config.NoSetID && (c.Profile == SeccompOff || !pl.host.Seccomp) {
		pl.fail(invalidField("seccomp.profile", SeccompOff, "what belongs to root is writable here, and without a filter "+
			"the guest could leave a set-user-ID program of root's: use a filter, or a directory of another user"))
		return
	}
	if c.Profile == SeccompOff || pl.usesProcessGroups() {
		return
	}
	if !pl.host.Seccomp {
		if pl.accepts(ProtectSeccomp) {
			pl.drop(ProtectSeccomp, "this kernel has no seccomp filters")
			return
		}
		pl.fail(&UnsupportedError{Feature: "seccomp filters", Since: "4.14",
			Remedy: "the kernel needs CONFIG_SECCOMP_FILTER; or accept running without them (degrade seccomp)"})
		return
	}
	err := pl.filter()
	var unsupported *UnsupportedError
	if err != nil && !errors.As(err, &unsupported) {
		err = invalidBecause("", err)
	}
	pl.fail(err)
}

func (pl *planner) filter() (err error) {
	c, arch := pl.spec.Seccomp, pl.host.Arch
	if c.Policy != nil {
		pl.plan.profile = "policy"
		pl.config.Filter, err = seccomp.Compile(c.Policy, arch, pl.host.Kernel)
		if errors.Is(err, seccomp.ErrNoCompiler) {
			return &UnsupportedError{Feature: "a user-supplied seccomp policy", Err: err, Field: "seccomp.policy"}
		}
		if err != nil {
			return err
		}
		return pl.checkPolicy()
	}
	profile := cmp.Or(c.Profile, "default")
	if !pl.hasNamespaces() && profile == "default" {
		profile = "shared"
	}
	pl.plan.profile = profile
	pl.config.Filter, err = seccomp.Builtin(profile, arch)
	if !pl.hasNamespaces() && profile != "shared" && err == nil {
		// The others leave calls that Landlock does not look at.
		pl.plan.profile += " and shared"
		pl.config.Filter, err = pl.config.Filter.And("shared", arch)
	}
	return err
}

// checkPolicy refuses a policy under which no command can start: some calls are
// still to be made after the filter has been installed. The built-in profiles allow
// them.
func (pl *planner) checkPolicy() error {
	goarch := pl.host.Arch
	var missing []string
	needed := append([]string{"execveat"}, launch.GateCalls...)
	if pl.spec.Seccomp.Audit {
		needed = append(needed, "sendmsg")
	}
	for _, name := range needed {
		nr, _ := seccomp.Number(goarch, name) // all are known
		a := pl.config.Filter.Decide(seccomp.Call{Arch: seccomp.AuditArch(goarch), Nr: nr})
		if a.Kind != seccomp.Allow && a.Kind != seccomp.Log && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return invalidField("seccomp.policy", "", "a command cannot be started without %s, which it refuses",
			strings.Join(missing, ", "))
	}
	return nil
}
