package seccomp

import (
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var arches = []string{"amd64", "arm64"}

// decide is what a profile says, by its groups and refusals themselves: the
// filters are compared with it.
func (p *Profile) decide(goarch string, c Call) Action {
	name := nameOf(goarch, c.Nr)
	g := p.group(name)
	switch {
	case c.Arch != AuditArch(goarch) || c.Nr >= 0x40000000 && c.Nr != ^uint32(0):
		return Action{Kind: KillProcess}
	case g == nil:
		return refuse(enosys)
	case g.Action.Kind != Allow:
		return g.Action
	}
	for _, r := range p.Refusals {
		holds := func(args []Arg) bool { return all(args, c) }
		if r.Call == name && (slices.ContainsFunc(r.When, holds) || r.Unless != nil && !slices.ContainsFunc(r.Unless, holds)) {
			return r.Action
		}
	}
	return g.Action
}

func all(args []Arg, c Call) bool {
	return !slices.ContainsFunc(args, func(a Arg) bool { return !a.holds(c.Args[a.Index]) })
}

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

var names = make(map[string]map[uint32]string)

// nameOf is Name, remembered.
func nameOf(goarch string, nr uint32) string {
	if names[goarch] == nil {
		names[goarch] = make(map[uint32]string)
		calls(goarch, func(name string, nr uint32) bool {
			names[goarch][nr] = name
			return true
		})
	}
	return names[goarch][nr]
}

// boundaries are values on both sides of where a condition on an argument may
// change its mind, with garbage above the lower half, too.
func boundaries(conditions [][]Arg, index uint) []uint64 {
	values := []uint64{0, 1, 1<<32 - 1, 1 << 32, ^uint64(0)}
	for _, args := range conditions {
		for _, a := range args {
			if a.Index == index {
				for _, v := range []uint64{a.Value - 1, a.Value, a.Value + 1, a.ValueTwo, a.Value | a.ValueTwo, ^a.Value} {
					values = append(values, v, v|1<<40)
				}
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// eachCall yields every call number that could matter, on every architecture, with
// every combination of arguments at the boundaries of the conditions on it.
func eachCall(goarch string, conditions func(name string) [][]Arg, yield func(Call)) {
	numbers := []uint32{1<<30 - 1, 1 << 30, 1<<30 | 1, 1<<30 | 101, 1 << 31, ^uint32(0) - 1, ^uint32(0)}
	for nr := range uint32(1024) {
		numbers = append(numbers, nr)
	}
	for _, arch := range []uint32{AuditArch("amd64"), AuditArch("arm64"), 0x40000003 /* i386 */, 0x40000028 /* arm */, 0, ^uint32(0)} {
		for _, nr := range numbers {
			when := conditions(nameOf(goarch, nr))
			var values [6][]uint64
			combinations := 1
			for i := range values {
				values[i] = []uint64{0}
				if arch == AuditArch(goarch) && slices.ContainsFunc(when, func(args []Arg) bool {
					return slices.ContainsFunc(args, func(a Arg) bool { return int(a.Index) == i })
				}) {
					values[i] = boundaries(when, uint(i))
				}
				combinations *= len(values[i])
			}
			for n := range combinations {
				c := Call{Arch: arch, Nr: nr}
				for i, v := range values {
					c.Args[i] = v[n%len(v)]
					n /= len(v)
				}
				yield(c)
			}
		}
	}
}

func (p *Profile) conditions(name string) (when [][]Arg) {
	for _, r := range p.Refusals {
		if r.Call == name {
			when = append(when, slices.Concat(r.When, r.Unless)...)
		}
	}
	return when
}

// The embedded filters decide as the profiles say.
func TestFiltersDecideAsProfilesSay(t *testing.T) {
	for _, p := range profiles() {
		for _, goarch := range arches {
			f, err := Builtin(p.Name, goarch)
			if err != nil {
				t.Fatal(err)
			}
			n, wrong := 0, 0
			eachCall(goarch, p.conditions, func(c Call) {
				n++
				if got, want := f.Decide(c), p.decide(goarch, c); got != want && wrong < 10 {
					wrong++
					t.Errorf("%s %s: %s %x arch %x: %s, want %s", p.Name, goarch, Name(goarch, c.Nr), c.Args, c.Arch, got, want)
				}
			})
			t.Logf("%s %s: %d calls, %d instructions", p.Name, goarch, n, len(f))
		}
	}
}

func TestProfilesNameRealCalls(t *testing.T) {
	for _, p := range profiles() {
		for _, g := range p.Groups {
			for _, c := range g.Calls {
				_, amd64 := Number("amd64", c)
				if _, arm64 := Number("arm64", c); !amd64 && !arm64 {
					t.Errorf("%s, %s: no call %s", p.Name, g.Name, c)
				}
			}
		}
	}
}

// Every call that there is stands in a group: none is ENOSYS by oversight.
func TestEveryKnownCallIsDecided(t *testing.T) {
	p := Lookup("default")
	for _, goarch := range arches {
		calls(goarch, func(name string, nr uint32) bool {
			if p.group(name) == nil {
				t.Errorf("%s %s (%d) is in no group", goarch, name, nr)
			}
			return true
		})
	}
}

// No profile allows what the default refuses, but for what it is made for.
func TestProfilesAreAsStrictAsTheDefault(t *testing.T) {
	may := map[string][]string{"debug": words("ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp")}
	def, _ := Builtin("default", "amd64")
	for _, p := range profiles() {
		f, _ := Builtin(p.Name, "amd64")
		eachCall("amd64", Lookup("default").conditions, func(c Call) {
			if f.Decide(c).Kind == Allow && def.Decide(c).Kind != Allow && !slices.Contains(may[p.Name], nameOf("amd64", c.Nr)) {
				t.Errorf("%s allows %s %x", p.Name, Name("amd64", c.Nr), c.Args)
			}
		})
	}
}

func TestListingGolden(t *testing.T) {
	for _, p := range profiles() {
		f, err := Builtin(p.Name, "amd64")
		if err != nil {
			t.Fatal(err)
		}
		testenv.Golden(t, filepath.Join("testdata", p.Name+"_amd64.txt"), f.String(), *update)
	}
}

func TestAuditedAsksAboutEveryRefusal(t *testing.T) {
	f, _ := Builtin("default", "amd64")
	audited := f.Audited()
	eachCall("amd64", Lookup("default").conditions, func(c Call) {
		was, is := f.Decide(c), audited.Decide(c)
		if was.Kind == Allow && is.Kind != Allow || was.Kind != Allow && is.Kind != Notify {
			t.Errorf("%s: %s became %s", Name("amd64", c.Nr), was, is)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"no JSON", `{`, "unexpected end"},
		{"empty", `{}`, "defaultAction: unknown action"},
		{"unknown action", `{"defaultAction":"ALLOW"}`, "unknown action \"ALLOW\""},
		{"supervisor", `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"action":"SCMP_ACT_NOTIFY"}]}`, "supervisor"},
		{"no names", `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"action":"SCMP_ACT_ERRNO"}]}`, "no names"},
		{"odd name", `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["a b"],"action":"SCMP_ACT_ERRNO"}]}`, "not the name of a system call"},
		{"argument", `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"action":"SCMP_ACT_ERRNO","args":[{"index":6,"op":"SCMP_CMP_EQ"}]}]}`, "argument 6"},
		{"operator", `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"action":"SCMP_ACT_ERRNO","args":[{"op":"=="}]}]}`, "unknown operator"},
		{"errno", `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":5000}`, "above 4095"},
		{"architecture", `{"defaultAction":"SCMP_ACT_ERRNO","architectures":["x86"]}`, "unknown architecture"},
	} {
		if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
	_, err := Parse([]byte(`{"defaultAction":"X","syscalls":[{"action":"Y"}]}`))
	if n := strings.Count(fmt.Sprint(err), "\n"); n != 2 {
		t.Errorf("%v: want everything that is wrong", err)
	}
}

func TestBuiltinRefusesUnknownNames(t *testing.T) {
	if _, err := Builtin("nope", "amd64"); err == nil || !strings.Contains(err.Error(), "default, debug, shared, strict") {
		t.Error(err)
	}
	if _, err := Builtin("default", "riscv64"); err == nil {
		t.Error("a profile for riscv64")
	}
}

// FuzzParse: no policy, however odd, gets past the checks and then panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":1,"archMap":[{"architecture":"SCMP_ARCH_X86_64","subArchitectures":["SCMP_ARCH_X86"]}],
		"syscalls":[{"names":["read","socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":2114060288,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}],"includes":{"caps":["CAP_X"],"minKernel":"4.8"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		p.Unknown()
		if _, err := Compile(p, "amd64", "6.1"); err != nil && !errors.Is(err, ErrNoCompiler) {
			t.Log(err) // libseccomp has its own mind
		}
	})
}

// FuzzLower: whatever filter it is given, what comes out decides the same.
func FuzzLower(f *testing.F) {
	def, _ := Builtin("default", "amd64")
	f.Add(def.Bytes(), uint32(1), uint64(2), uint64(3))
	f.Fuzz(func(t *testing.T, text []byte, nr uint32, a, b uint64) {
		in, err := parse(text)
		if err != nil {
			return
		}
		out, err := lower(in)
		if err != nil {
			return
		}
		for _, c := range []Call{
			{Nr: nr, Arch: AuditArch("amd64"), Args: [6]uint64{a, b, a ^ b}}, {Nr: nr + 1, Arch: uint32(a), Args: [6]uint64{b, a}},
			{Nr: bits.Reverse32(nr), Arch: AuditArch("amd64"), IP: a, Args: [6]uint64{a + 1, b - 1}},
		} {
			if got, want := out.Decide(c), in.Decide(c); got != want {
				t.Fatalf("%+v: %s, want %s\n%s\n%s", c, got, want, in, out)
			}
		}
	})
}

// PROFILES.md is generated from the profiles.
func TestProfilesDocumentGolden(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Seccomp profiles\n\nWhich system calls a guest may make, and the reasons. `make golden` generates this page.\n")
	for _, p := range profiles() {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| decision | group | why | calls |\n|---|---|---|---|\n", p.Name, p.About)
		for _, g := range p.Decided() {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.Action, g.Name, g.Why, strings.Join(g.Calls, " "))
		}
		b.WriteString("| ENOSYS | everything else | newer than the profile: programs fall back to older calls | |\n" +
			"| kill | 32-bit, x32 and foreign system calls | programs need only the native ones | |\n")
		b.WriteString("\nAllowed calls are refused with certain arguments:\n\n| decision | call | why |\n|---|---|---|\n")
		for _, r := range p.Refusals {
			if p.group(r.Call).Action.Kind == Allow {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Action, r.Call, r.Why)
			}
		}
	}
	testenv.Golden(t, "PROFILES.md", b.String(), *update)
}

// Two profiles together allow what both do.
func TestAnd(t *testing.T) {
	for _, goarch := range arches {
		strict, _ := Builtin("strict", goarch)
		shared, _ := Builtin("shared", goarch)
		both, err := strict.And("shared", goarch)
		if err != nil {
			t.Fatal(err)
		}
		eachCall(goarch, Lookup("shared").conditions, func(c Call) {
			if got, want := both.Decide(c).Kind == Allow, strict.Decide(c).Kind == Allow && shared.Decide(c).Kind == Allow; got != want {
				t.Errorf("%s %s %x: allowed %t, want %t", goarch, nameOf(goarch, c.Nr), c.Args, got, want)
			}
		})
	}
}

func TestNoSetID(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		f := NoSetID(arch)
		if err := f.check(); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			args [6]uint64
			want Kind
		}{
			{"chmod", [6]uint64{1, 0o755}, Allow}, {"chmod", [6]uint64{1, 0o4755}, Errno}, {"chmod", [6]uint64{1, 0o2000}, Errno},
			{"chmod", [6]uint64{0o4000, 0o1777}, Allow}, {"fchmod", [6]uint64{1, 0xffffffff00000000 | 0o4000}, Errno},
			{"fchmodat", [6]uint64{1, 2, 0o6755}, Errno}, {"fchmodat", [6]uint64{0o6000, 0o6000, 0o755}, Allow},
			{"fchmodat2", [6]uint64{1, 2, 0o2755}, Errno}, {"mknodat", [6]uint64{1, 2, 0o104755}, Errno},
			{"mkdirat", [6]uint64{1, 2, 0o1777}, Allow}, {"openat", [6]uint64{1, 2, 0o101, 0o4755}, Errno},
			{"openat", [6]uint64{1, 2, 0, 0o4755}, Allow}, {"openat", [6]uint64{1, 2, 0o20200000, 0o4755}, Errno},
			{"openat", [6]uint64{1, 2, 0o200000, 0o4755}, Allow}, // O_DIRECTORY, which O_TMPFILE has as well
			{"open", [6]uint64{1, 0o101, 0o644}, Allow}, {"open", [6]uint64{1, 0o101, 0o4644}, Errno}, {"creat", [6]uint64{1, 0o4755}, Errno},
			{"openat2", [6]uint64{}, Errno}, {"read", [6]uint64{0o6000, 0o6000, 0o6000, 0o6000}, Allow},
		} {
			nr, ok := Number(arch, c.name)
			if !ok {
				continue
			}
			if got := f.Decide(Call{Arch: AuditArch(arch), Nr: nr, Args: c.args}); got.Kind != c.want {
				t.Errorf("%s %s%#o: %v", arch, c.name, c.args, got)
			}
		}
	}
}
