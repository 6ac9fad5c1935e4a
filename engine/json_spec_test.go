package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// fill sets every field to something other than zero, a different one each time.
func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(*n)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 4)
	case reflect.String:
		v.SetString("s" + string(rune('a'+*n%26)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(v.Kind())
	}
}

// filled is a Spec with every field set, though it cannot be.
func filled() (s Spec) {
	var n int64
	fill(reflect.ValueOf(&s).Elem(), &n)
	s.Limits.Wall = 1500 * time.Millisecond
	s.Limits.Memory, s.Limits.Pids, s.Limits.ToolTime = UnlimitedBytes, UnlimitedCount, UnlimitedTime
	s.FS.Mounts[0].Mode, s.FS.Mounts[0].Type, s.FS.Mounts[1].Type = 0o755, MountBind, MountTmpfs
	s.FS.WorkspaceMode, s.Seccomp.Profile, s.Limits.CPUSet = WorkspaceOverlay, "strict", "0-2,5"
	s.FS.Protect, s.FS.View = ProtectStrict, ViewHost
	s.Degrade = []Protection{ProtectMemory, ProtectCPUs}
	s.Require = []Requirement{{LimitMemory, ByCgroup}, {LimitCPUTime, ByRlimit}}
	s.Env = []string{"A=1", "B=<&>"}
	s.Seccomp.Policy = filledPolicy()
	return s
}

func filledPolicy() *seccomp.Policy {
	errno := uint32(38)
	filters := &seccomp.Filters{Arches: []string{"amd64"}, Caps: []string{"CAP_SYS_ADMIN"}, MinKernel: "4.8"}
	return &seccomp.Policy{
		DefaultAction: seccomp.Errno, DefaultErrnoRet: &errno, Architectures: []string{"SCMP_ARCH_X86_64"},
		ArchMap: []seccomp.ArchMap{{Architecture: "SCMP_ARCH_X86_64", SubArchitectures: []string{"SCMP_ARCH_X86"}}},
		Flags:   []string{"SECCOMP_FILTER_FLAG_LOG"},
		Syscalls: []seccomp.Rule{{
			Name: "read", Names: []string{"write"}, Action: seccomp.Allow, ErrnoRet: &errno, Comment: "<&>",
			Args:     []seccomp.Arg{{Index: 1, Value: math.MaxUint64, ValueTwo: 3, Op: seccomp.OpMasked}},
			Includes: filters, Excludes: filters,
		}},
	}
}

func indented(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSpecJSONGolden(t *testing.T) {
	testenv.Golden(t, filepath.Join("testdata", "json", "spec_zero.json"), indented(t, Spec{}), *update)
	testenv.Golden(t, filepath.Join("testdata", "json", "spec_full.json"), indented(t, filled()), *update)
}

func roundTrip(s Spec) (Spec, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return s, err
	}
	return ParseSpec(bytes.NewReader(text))
}

// A field that members do not list would come back as zero.
func TestSpecJSONHasEveryField(t *testing.T) {
	for _, s := range []Spec{{}, filled(), {FS: FS{Hidden: []string{}}}, {User: &User{}}} {
		if got, err := roundTrip(s); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, %v; want %+v", got, err, s)
		}
	}
	var l Limits
	text, err := json.Marshal(filled().Limits)
	if err != nil || json.Unmarshal(text, &l) != nil || !reflect.DeepEqual(l, filled().Limits) {
		t.Errorf("limits: %+v, %v", l, err)
	}
}

func TestSpecJSONRoundTrip(t *testing.T) {
	same := func(s Spec, wall time.Duration) bool {
		s.Seccomp.Policy = nil // its JSON is docker's, which does not keep an empty list
		s.Limits.Wall = wall
		got, err := roundTrip(s)
		return err == nil && reflect.DeepEqual(got, s)
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
	for _, d := range []time.Duration{math.MinInt64, -1, 1, 999_999_999, time.Second, math.MaxInt64 - 1, math.MaxInt64} {
		if !same(Spec{}, d) {
			t.Errorf("%d ns does not come back", d)
		}
	}
}

func TestSpecJSONRefusesWhatItCannotHold(t *testing.T) {
	for field, s := range map[string]Spec{
		"fs.mounts[1].source": {FS: FS{Mounts: []Mount{{}, {Source: "\xff"}}}},
		"limits.cpus":         {Limits: Limits{CPUs: math.NaN()}},
	} {
		_, err := json.Marshal(s)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || invalid.Field != field || !errors.Is(err, ErrInvalid) {
			t.Errorf("%v, want an InvalidError about %s", err, field)
		}
	}
}

func TestParseSpecRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing": {" \n",
			"empty: want a JSON object; {} is the default"},
		"syntax": {"{\n\"name\": x}",
			"line 2: not JSON: invalid character 'x' looking for beginning of value"},
		"cut off": {"{\n\"name\":",
			"line 2: not JSON: unexpected end of JSON input"},
		"two": {"{} {}",
			"line 1: not JSON: invalid character '{' after top-level value"},
		"a list": {"[]",
			"line 1: want an object"},
		"null": {"null",
			"line 1: null: want an object"},
		"encoding": {"{\"name\":\n\"\xff\"}",
			"line 2: not UTF-8"},
		"unknown": {`{"user": {"name": 1}}`,
			"line 1: user.name: unknown field: use uid, gid"},
		"case": {`{"FS": {}}`,
			"line 1: FS: unknown field: use name, hostname, user, fs, env, limits, " +
				"seccomp, keep, degrade, allow_no_isolation, require"},
		"twice": {"{\"keep\": true,\n\"keep\": false}",
			"line 2: keep: listed twice"},
		"half a user": {`{"user": {"uid": 1}}`,
			"line 1: user.gid: missing"},
		"text": {`{"name": 1}`,
			"line 1: name 1: want a string"},
		"bool": {`{"keep": "yes"}`,
			`line 1: keep "yes": want true or false`},
		"null bool": {`{"keep": null}`,
			`line 1: keep null: want true or false`},
		"list": {`{"env": {}}`,
			"line 1: env: want a list"},
		"in a list": {"{\"env\": [\"A=1\",\n2]}",
			"line 2: env[1] 2: want a string"},
		"object in list": {`{"fs": {"mounts": [{}, 1]}}`,
			"line 1: fs.mounts[1] 1: want an object"},
		"deep": {`{"fs": {"mounts": [{}, {"to": 1}]}}`,
			"line 1: fs.mounts[1].to: unknown field: use type, source, target, read_only, size_bytes, mode, no_exec"},
		"suffix": {`{"limits": {"memory_bytes": "64m"}}`,
			`line 1: limits.memory_bytes "64m": want a whole number of bytes, or "unlimited"`},
		"fraction": {`{"limits": {"pids": 1.5}}`,
			`line 1: limits.pids 1.5: want a whole number, or "unlimited"`},
		"too large": {`{"limits": {"tmp_bytes": 9223372036854775808}}`,
			`line 1: limits.tmp_bytes 9223372036854775808: want a whole number of bytes, or "unlimited"`},
		"seconds": {`{"limits": {"wall_seconds": "1m"}}`,
			`line 1: limits.wall_seconds "1m": want a number of seconds, or "unlimited"`},
		"too long": {`{"limits": {"wall_seconds": 1e10}}`,
			`line 1: limits.wall_seconds 1e10: want a number of seconds, or "unlimited"`},
		"endless": {`{"limits": {"wall_seconds": 1e999999999}}`,
			`line 1: limits.wall_seconds 1e999999999: want a number of seconds, or "unlimited"`},
		"cpus": {`{"limits": {"cpus": "unlimited"}}`,
			`line 1: limits.cpus "unlimited": want a number`},
		"mode": {`{"fs": {"mounts": [{"mode": 493}]}}`,
			`line 1: fs.mounts[0].mode 493: want permission bits as octal digits in quotes, such as "0755"`},
		"policy": {"{\"seccomp\": {\"policy\":\n{\"defaultAktion\": \"\"}}}",
			`line 2: seccomp.policy: unknown field "defaultAktion"`},
		"no policy": {`{"seccomp": {"policy": null}}`,
			"line 1: seccomp.policy: want an object"},
		"a list of flags": {`{"limits": []}`,
			"line 1: limits: want an object"},
	} {
		_, err := ParseSpec(strings.NewReader(c.text))
		if !errors.Is(err, ErrInvalid) || err.Error() != "invalid: "+c.want {
			t.Errorf("%s: got  %v\nwant %s", name, err, c.want)
		}
	}
	if _, err := ParseSpec(bytes.NewReader(bytes.Repeat([]byte(" "), maxSpecText+1))); !errors.Is(err, ErrInvalid) {
		t.Errorf("too much: %v", err)
	}
}

func TestParseSpecAccepts(t *testing.T) {
	s, err := ParseSpec(strings.NewReader(`{"limits": {
		"wall_seconds": 1.5e1, "tool_time_seconds": 1e-07, "pids": "unlimited", "files": 0}, "fs": {}, "env": [], "name": "\u00e4<"}`))
	want := Spec{Name: "ä<", Env: []string{}, Limits: Limits{Wall: 15 * time.Second, ToolTime: 100, Pids: UnlimitedCount}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
}

// What ParseSpec accepts comes back; what it refuses is ErrInvalid.
func FuzzParseSpec(f *testing.F) {
	for _, s := range []Spec{{}, filled()} {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"limits": {"wall_seconds": 1e-3}, "env": null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSpec(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%v is no ErrInvalid", err)
			}
			return
		}
		policy := s.Seccomp.Policy
		got, err := roundTrip(s)
		if (policy == nil) != (got.Seccomp.Policy == nil) {
			t.Errorf("the policy changes: %+v, %+v", policy, got.Seccomp.Policy)
		}
		s.Seccomp.Policy, got.Seccomp.Policy = nil, nil
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, %v; want %+v", got, err, s)
		}
		_ = s.Validate() // must not panic
	})
}

// Paths in errors are those of the JSON.
func TestInvalidFieldsAreInTheJSON(t *testing.T) {
	bad := filled()
	bad.Degrade, bad.Require, bad.Env = []Protection{"x"}, []Requirement{{"x", "y"}}, []string{"x"}
	bad.Seccomp.Profile, bad.FS.WorkspaceMode = "x", "x"
	bad.Limits = Limits{CPUs: -1, CPUWeight: 10001, CPUSet: "x", Files: 3, Frame: 1, Wall: -1, Workspace: MiB,
		IO: []IOLimit{{Device: "x", ReadBPS: -1}}}
	bad.User = &User{UID: -1}
	bad.FS.Mounts = []Mount{{Size: 1}, {Type: MountTmpfs, ReadOnly: true, Size: -1, Mode: 1 << 20}, {Type: "x"}}
	bad.Hostname, bad.Name, bad.FS.Workspace = "/", "/", "/"
	var err error = bad.Validate()
	fields := make(map[string]bool)
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		collectFields(err, fields)
	}
	if len(fields) < 20 {
		t.Errorf("%d fields: %v", len(fields), fields)
	}
	for field := range fields {
		if !hasPath(&bad, field) {
			t.Errorf("no field %s", field)
		}
	}
}

func collectFields(err error, into map[string]bool) {
	switch err := err.(type) {
	case *InvalidError:
		if err.Field != "" {
			into[err.Field] = true
		}
	case interface{ Unwrap() []error }:
		for _, err := range err.Unwrap() {
			collectFields(err, into)
		}
	}
}

// hasPath reports whether members lead to a path.
func hasPath(at any, path string) bool {
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch p := at.(type) {
		case jsonOptional:
			at = p.get()
		case jsonArray:
			at = p.elements()[key[0]-'0']
			continue
		}
		o, ok := at.(jsonObject)
		if !ok {
			return false
		}
		m, ok := memberOf(o.members(), key)
		if !ok {
			return false
		}
		at = m.at
	}
	return true
}
