//go:build libseccomp && cgo && linux

package seccomp

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	_ "github.com/moby/profiles/seccomp" // docker's profile; only the file is read

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// What is embedded is what libseccomp makes now.
func TestEmbeddedIsWhatIsCompiled(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the embedded profiles were compiled on amd64")
	}
	for _, name := range Names() {
		for _, goarch := range arches {
			compiled, err := CompileBuiltin(name, goarch)
			if err != nil {
				t.Fatal(err)
			}
			if embedded, err := Builtin(name, goarch); err != nil || !bytes.Equal(embedded.Bytes(), compiled.Bytes()) {
				t.Errorf("%s for %s is not what go generate makes, %v", name, goarch, err)
			}
		}
	}
}

// The tree decides as what libseccomp made, for every call.
func TestLoweredDecidesAsLinear(t *testing.T) {
	for _, p := range profiles() {
		for _, goarch := range arches {
			linear, err := linearBuiltin(p.Name, goarch)
			if err != nil {
				t.Fatal(err)
			}
			lowered, err := lower(linear)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s: %d instructions, %d as a tree", p.Name, goarch, len(linear), len(lowered))
			eachCall(goarch, p.conditions, func(c Call) {
				if got, want := lowered.Decide(c), linear.Decide(c); got != want {
					t.Errorf("%s %s: %s %x arch %x: %s, want %s", p.Name, goarch, Name(goarch, c.Nr), c.Args, c.Arch, got, want)
				}
			})
		}
	}
}

// decide is what a policy says by its rules, which do not overlap.
func (p *Policy) decide(goarch string, c Call) Action {
	for _, r := range p.Syscalls {
		if !r.applies(goarch, "6.1") || !slices.Contains(r.names(), nameOf(goarch, c.Nr)) {
			continue
		}
		if slices.ContainsFunc(alternatives(r.Args), func(args []Arg) bool { return all(args, c) }) {
			return toAction(r.Action, r.ErrnoRet)
		}
	}
	return toAction(p.DefaultAction, p.DefaultErrnoRet)
}

func (p *Policy) conditions(name string) (when [][]Arg) {
	for _, r := range p.Syscalls {
		if slices.Contains(r.names(), name) && r.applies(runtime.GOARCH, "6.1") {
			when = append(when, alternatives(r.Args)...)
		}
	}
	return when
}

func (p *Policy) compare(t *testing.T) {
	t.Helper()
	linear, err := p.linear(runtime.GOARCH, "6.1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Compile(p, runtime.GOARCH, "6.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d instructions, %d as a tree", len(linear), len(f))
	eachCall(runtime.GOARCH, p.conditions, func(c Call) {
		if got, want := f.Decide(c), linear.Decide(c); got != want {
			t.Errorf("%s %x arch %x: %s, libseccomp's own says %s", Name(runtime.GOARCH, c.Nr), c.Args, c.Arch, got, want)
		}
		if c.Arch != AuditArch(runtime.GOARCH) || c.Nr >= 0x40000000 {
			return
		}
		if got, want := f.Decide(c), p.decide(runtime.GOARCH, c); got != want {
			t.Errorf("%s %x: %s, the policy says %s", Name(runtime.GOARCH, c.Nr), c.Args, got, want)
		}
	})
}

// Docker's own profile works as it is.
func TestDockersProfile(t *testing.T) {
	p, err := Parse(testenv.DockerProfile(t))
	if err != nil {
		t.Fatal(err)
	}
	p.compare(t)
	f, err := Compile(p, "amd64", "6.1")
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{"read": "allow", "mount": "EPERM", "clone3": "ENOSYS", "ptrace": "allow"} {
		nr, _ := Number("amd64", call)
		if got := f.Decide(Call{Arch: AuditArch("amd64"), Nr: nr}).String(); got != want {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
	}
}

// Policies made at random, with rules that do not overlap, are compiled to what
// they say.
func TestRandomPolicies(t *testing.T) {
	names := words("read socket ioctl clone mknod openat statx personality prctl kill fchmodat2 mseal")
	kinds := []Kind{Allow, Errno, KillProcess, Log, Trap}
	r := rand.New(rand.NewPCG(1, 2))
	for range 15 {
		p := &Policy{DefaultAction: kinds[r.IntN(len(kinds))]}
		for _, name := range names {
			// One condition a call: then nothing overlaps.
			rule := Rule{Names: []string{name}, Action: kinds[r.IntN(len(kinds))]}
			if r.IntN(2) == 0 {
				ops := []Op{OpEqual, OpNotEqual, OpLess, OpLessEq, OpGreater, OpGreaterEq, OpMasked}
				a := Arg{Index: uint(r.IntN(3)), Op: ops[r.IntN(len(ops))], Value: r.Uint64() >> r.IntN(64)}
				if a.Op == OpMasked {
					a.ValueTwo = a.Value & r.Uint64()
				}
				rule.Args = []Arg{a}
			}
			p.Syscalls = append(p.Syscalls, rule)
		}
		p.compare(t)
	}
}
