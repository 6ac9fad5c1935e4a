package seccomp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Policy says which system calls are allowed. It is plain data: its JSON is what
// docker run --security-opt seccomp=FILE and the seccomp part of an OCI
// runtime specification hold. Rules for one call should not overlap: which of
// them counts is then libseccomp's choice.
type Policy struct {
	DefaultAction   Kind      `json:"defaultAction"`
	DefaultErrnoRet *uint32   `json:"defaultErrnoRet,omitempty"` // of Errno; nil is EPERM
	Architectures   []string  `json:"architectures,omitempty"`   // SCMP_ARCH_…; none: the native one
	ArchMap         []ArchMap `json:"archMap,omitempty"`         // docker's way to say the same
	Syscalls        []Rule    `json:"syscalls"`

	// Flags of seccomp(2) have no effect here: they are accepted, since
	// profiles have them.
	Flags []string `json:"flags,omitempty"`
}

// ArchMap lists architectures that programs of another may use as well.
type ArchMap struct {
	Architecture     string   `json:"architecture"`
	SubArchitectures []string `json:"subArchitectures"`
}

// Rule is an action for some calls.
type Rule struct {
	Name     string   `json:"name,omitempty"` // docker's older form: one name
	Names    []string `json:"names,omitempty"`
	Action   Kind     `json:"action"`
	ErrnoRet *uint32  `json:"errnoRet,omitempty"` // of Errno; nil is EPERM
	Args     []Arg    `json:"args,omitempty"`     // all have to hold
	Includes *Filters `json:"includes,omitempty"` // the rule is only for these
	Excludes *Filters `json:"excludes,omitempty"` // and not for those
	Comment  string   `json:"comment,omitempty"`
}

// Filters say for which machines a rule is. Guests have no capability, so a rule
// that includes one is never for them.
type Filters struct {
	Arches    []string `json:"arches,omitempty"` // GOARCH
	Caps      []string `json:"caps,omitempty"`
	MinKernel string   `json:"minKernel,omitempty"` // "4.8"
}

// Arg is a comparison of an argument.
type Arg struct {
	Index    uint   `json:"index"` // 0 to 5
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo,omitempty"`
	Op       Op     `json:"op"`
}

// Op is an operator of an Arg.
type Op string

// The operators. OpMasked holds when the argument and Value have ValueTwo in
// common: arg & Value == ValueTwo.
const (
	OpEqual     Op = "SCMP_CMP_EQ"
	OpNotEqual  Op = "SCMP_CMP_NE"
	OpLess      Op = "SCMP_CMP_LT"
	OpLessEq    Op = "SCMP_CMP_LE"
	OpGreater   Op = "SCMP_CMP_GT"
	OpGreaterEq Op = "SCMP_CMP_GE"
	OpMasked    Op = "SCMP_CMP_MASKED_EQ"
)

func (a Arg) holds(v uint64) bool {
	switch a.Op {
	case OpEqual:
		return v == a.Value
	case OpNotEqual:
		return v != a.Value
	case OpLess:
		return v < a.Value
	case OpLessEq:
		return v <= a.Value
	case OpGreater:
		return v > a.Value
	case OpGreaterEq:
		return v >= a.Value
	}
	return v&a.Value == a.ValueTwo
}

// Parse reads a policy from JSON and checks it. Its error says everything that
// is wrong with it.
func Parse(text []byte) (*Policy, error) {
	var p Policy
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("seccomp policy: %w", err)
	}
	return &p, p.Validate()
}

// maxRules bounds what a policy may ask libseccomp to work on.
const maxRules = 10_000

// Validate reports everything in the policy that cannot be, joined.
func (p *Policy) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("seccomp policy: "+format, args...))
	}
	checkAction := func(where string, k Kind, errno *uint32) {
		switch {
		case k == "SCMP_ACT_TRACE" || k == Notify:
			bad("%s: %s needs a supervisor, and there is none", where, k)
		case k == "SCMP_ACT_KILL": // what libseccomp calls KILL_THREAD, too
		case !slices.ContainsFunc(kinds, func(known returned) bool { return known.kind == k }):
			bad("%s: unknown action %q", where, k)
		case errno != nil && *errno > 4095:
			bad("%s: errno %d is above 4095", where, *errno)
		}
	}
	checkAction("defaultAction", p.DefaultAction, p.DefaultErrnoRet)
	total := 0
	for i, r := range p.Syscalls {
		where := fmt.Sprintf("syscalls[%d]", i)
		names := r.names()
		if total += len(names); total > maxRules {
			bad("more than %d rules", maxRules)
			break
		}
		if len(names) == 0 {
			bad("%s: no names", where)
		}
		for _, n := range names {
			if n == "" || strings.ContainsFunc(n, func(c rune) bool { return c < '0' || c > 'z' }) {
				bad("%s: %q is no name of a system call", where, n)
			}
		}
		checkAction(where, r.Action, r.ErrnoRet)
		for _, a := range r.Args {
			if a.Index > 5 {
				bad("%s: argument %d; there are 0 to 5", where, a.Index)
			}
			if !slices.Contains([]Op{OpEqual, OpNotEqual, OpLess, OpLessEq, OpGreater, OpGreaterEq, OpMasked}, a.Op) {
				bad("%s: unknown operator %q", where, a.Op)
			}
		}
	}
	for _, a := range p.Architectures {
		if !strings.HasPrefix(a, "SCMP_ARCH_") {
			bad("unknown architecture %q", a)
		}
	}
	return errors.Join(errs...)
}

func (r Rule) names() []string {
	if r.Name != "" {
		return append([]string{r.Name}, r.Names...)
	}
	return r.Names
}

// applies tells whether a rule is for guests on such a machine.
func (r Rule) applies(goarch, kernel string) bool {
	if f := r.Includes; f != nil {
		if len(f.Caps) > 0 || len(f.Arches) > 0 && !slices.Contains(f.Arches, goarch) || f.MinKernel != "" && !atLeast(kernel, f.MinKernel) {
			return false
		}
	}
	if f := r.Excludes; f != nil { // guests have no capability to be excluded for
		if slices.Contains(f.Arches, goarch) || f.MinKernel != "" && atLeast(kernel, f.MinKernel) {
			return false
		}
	}
	return true
}

// atLeast compares the first two numbers of kernel releases.
func atLeast(release, first string) bool {
	var a, b [2]int
	fmt.Sscanf(release, "%d.%d", &a[0], &a[1])
	fmt.Sscanf(first, "%d.%d", &b[0], &b[1])
	return slices.Compare(a[:], b[:]) >= 0
}

// Unknown lists names in the policy that no architecture known here has. They
// are of other machines or of newer kernels, and have no effect.
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

// toAction is the action of a rule, with its errno.
func toAction(k Kind, errno *uint32) Action {
	a := Action{Kind: k}
	if k == "SCMP_ACT_KILL" {
		a.Kind = KillThread
	}
	if k == Errno {
		a.Errno = eperm
		if errno != nil {
			a.Errno = syscall.Errno(*errno)
		}
	}
	return a
}

// alternatives: docker takes several comparisons of one argument to mean any of
// them, and of different ones, all.
func alternatives(args []Arg) [][]Arg {
	seen := make(map[uint]bool)
	for _, a := range args {
		if seen[a.Index] {
			var each [][]Arg
			for _, a := range args {
				each = append(each, []Arg{a})
			}
			return each
		}
		seen[a.Index] = true
	}
	return [][]Arg{args}
}
