package seccomp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Policy says which system calls are allowed. It is plain data; its JSON form is that
// of docker run --security-opt seccomp=FILE and of the seccomp section of an OCI
// runtime specification. Rules for one call should not overlap: libseccomp chooses
// which of them applies.
type Policy struct {
	DefaultAction   Kind      `json:"defaultAction"`             // for calls that no rule matches
	DefaultErrnoRet *uint32   `json:"defaultErrnoRet,omitempty"` // used with Errno, up to 4095; nil is EPERM
	Architectures   []string  `json:"architectures,omitempty"`   // SCMP_ARCH_…, besides the native one
	ArchMap         []ArchMap `json:"archMap,omitempty"`         // docker's alternative to Architectures
	Syscalls        []Rule    `json:"syscalls"`                  // at most 10,000 names in all

	// Flags of seccomp(2) are accepted, since profiles have them, and ignored.
	Flags []string `json:"flags,omitempty"`
}

// ArchMap lists the additional architectures that programs of a machine may use.
type ArchMap struct {
	Architecture     string   `json:"architecture"`     // the machine's: SCMP_ARCH_…
	SubArchitectures []string `json:"subArchitectures"` // additional ones: SCMP_ARCH_…
}

// Rule is the action for some calls.
type Rule struct {
	Name     string   `json:"name,omitempty"`     // docker's older form: one name
	Names    []string `json:"names,omitempty"`    // names of system calls; unknown ones have no effect
	Action   Kind     `json:"action"`             // what happens to the calls; not Notify
	ErrnoRet *uint32  `json:"errnoRet,omitempty"` // used with Errno, up to 4095; nil is EPERM
	Args     []Arg    `json:"args,omitempty"`     // all must hold; several on one argument: any of the list
	Includes *Filters `json:"includes,omitempty"` // the rule applies only to these machines
	Excludes *Filters `json:"excludes,omitempty"` // the rule does not apply to these machines
	Comment  string   `json:"comment,omitempty"`  // ignored
}

// Filters select machines. Guests have no capabilities, so a rule that includes one
// never applies, and excluding one has no effect.
type Filters struct {
	Arches    []string `json:"arches,omitempty"`    // GOARCH
	Caps      []string `json:"caps,omitempty"`      // CAP_…
	MinKernel string   `json:"minKernel,omitempty"` // the first kernel release: "4.8"
}

// Arg compares an argument of a call.
type Arg struct {
	Index    uint   `json:"index"`              // which argument, 0 to 5
	Value    uint64 `json:"value"`              // what it is compared with; the mask of OpMasked
	ValueTwo uint64 `json:"valueTwo,omitempty"` // what the masked argument is compared with; OpMasked only
	Op       Op     `json:"op"`                 // how, unsigned
}

// Op is an operator of an Arg.
type Op string

// The operators.
const (
	OpEqual     Op = "SCMP_CMP_EQ"        // arg == Value
	OpNotEqual  Op = "SCMP_CMP_NE"        // arg != Value
	OpLess      Op = "SCMP_CMP_LT"        // arg < Value
	OpLessEq    Op = "SCMP_CMP_LE"        // arg <= Value
	OpGreater   Op = "SCMP_CMP_GT"        // arg > Value
	OpGreaterEq Op = "SCMP_CMP_GE"        // arg >= Value
	OpMasked    Op = "SCMP_CMP_MASKED_EQ" // arg & Value == ValueTwo
)

var operators = []Op{OpEqual, OpNotEqual, OpLess, OpLessEq, OpGreater, OpGreaterEq, OpMasked}

// Parse reads a policy from JSON and validates it. The error lists its problems, up to 20.
func Parse(text []byte) (*Policy, error) {
	var p Policy
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("seccomp policy: %w", err)
	}
	if err := CheckKeys(text); err != nil {
		return nil, fmt.Errorf("seccomp policy: %w", err)
	}
	return &p, p.Validate()
}

// maxRules bounds the work that a policy causes in libseccomp.
const maxRules = 10_000

// maxProblems bounds an error: a policy may be a file that nobody has read.
const maxProblems = 20

// Validate returns an error that joins the problems of the policy, up to 20, or nil.
func (p *Policy) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		if len(errs) < maxProblems {
			errs = append(errs, fmt.Errorf("seccomp policy: "+format, args...))
		}
	}
	validateAction(bad, "defaultAction", p.DefaultAction, p.DefaultErrnoRet)
	total := 0
	for i, r := range p.Syscalls {
		if total += len(r.names()); total > maxRules {
			bad("more than %d rules", maxRules)
			break
		}
		r.validate(bad, fmt.Sprintf("syscalls[%d]", i))
	}
	for _, a := range p.Architectures {
		if !strings.HasPrefix(a, "SCMP_ARCH_") {
			bad("unknown architecture %.100q", a)
		}
	}
	return errors.Join(errs...)
}

func (r Rule) validate(bad func(string, ...any), where string) {
	names := r.names()
	if len(names) == 0 {
		bad("%s: no names", where)
	}
	for _, n := range names {
		if n == "" || strings.ContainsFunc(n, func(c rune) bool { return c < '0' || c > 'z' }) {
			bad("%s: %.100q is not the name of a system call", where, n)
		}
	}
	validateAction(bad, where, r.Action, r.ErrnoRet)
	for _, a := range r.Args {
		if a.Index > 5 {
			bad("%s: argument %d is out of range 0 to 5", where, a.Index)
		}
		if !slices.Contains(operators, a.Op) {
			bad("%s: unknown operator %.100q", where, a.Op)
		}
	}
}

func validateAction(bad func(string, ...any), where string, k Kind, errno *uint32) {
	switch {
	case k == "SCMP_ACT_TRACE" || k == Notify:
		bad("%s: %s is not supported: it needs a supervisor", where, k)
	case k == "SCMP_ACT_KILL": // libseccomp's other name for KILL_THREAD
	case !slices.ContainsFunc(kinds, func(known returned) bool { return known.kind == k }):
		bad("%s: unknown action %.100q", where, k)
	case errno != nil && *errno > 4095:
		bad("%s: errno %d is above 4095", where, *errno)
	}
}

func (r Rule) names() []string {
	if r.Name != "" {
		return append([]string{r.Name}, r.Names...)
	}
	return r.Names
}

// Unknown lists the calls in the policy that neither amd64 nor arm64 has. They belong
// to other architectures or newer kernels and have no effect.
func (p *Policy) Unknown() (names []string) {
	for _, r := range p.Syscalls {
		for _, n := range r.names() {
			if _, ok := Number("amd64", n); ok {
				continue
			}
			if _, ok := Number("arm64", n); !ok && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}
