package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

func TestParseMounts(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	bind := func(src, dst string, ro bool) engine.Mount {
		return engine.Mount{Type: engine.MountBind, Source: src, Target: dst, ReadOnly: ro}
	}
	for _, c := range []struct {
		parse func(string) (engine.Mount, error)
		in    string
		want  engine.Mount // zero: an error
	}{
		{parseVolume, "/a:/b", bind("/a", "/b", false)},
		{parseVolume, "/a:/b:ro", bind("/a", "/b", true)},
		{parseVolume, "/a:/b:rw", bind("/a", "/b", false)},
		{parseVolume, "/a:/b:z", bind("/a", "/b", false)},
		{parseVolume, "/a:/b:ro,Z", bind("/a", "/b", true)},
		{parseVolume, "/a:/b:cached", bind("/a", "/b", false)},
		{parseVolume, "/a:/b:shared", engine.Mount{}},
		{parseVolume, "./a:/b", bind(filepath.Join(here, "a"), "/b", false)},
		{parseVolume, "/a", engine.Mount{}},
		{parseVolume, "/a:b:/c", engine.Mount{}},
		{parseVolume, ":/b", engine.Mount{}},
		{parseMount, "type=bind,source=/a:b c,target=/d,readonly", bind("/a:b c", "/d", true)},
		{parseMount, `type=bind,"source=/a,b",dst=/d,ro=false`, bind("/a,b", "/d", false)},
		{parseMount, "type=tmpfs,target=/t,tmpfs-size=64m,tmpfs-mode=700",
			engine.Mount{Type: engine.MountTmpfs, Target: "/t", Size: 64 * engine.MiB, Mode: 0o700}},
		{parseMount, "source=/a,target=/b", engine.Mount{}},
		{parseMount, `type=bind,"source=/a`, engine.Mount{}},
		{parseTmpfs, "/t", engine.Mount{Type: engine.MountTmpfs, Target: "/t"}},
		{parseTmpfs, "/t:size=1g,mode=1777",
			engine.Mount{Type: engine.MountTmpfs, Target: "/t", Size: engine.GiB, Mode: 0o1777}},
		{parseTmpfs, "/t:rw,nosuid,exec", engine.Mount{Type: engine.MountTmpfs, Target: "/t"}},
		{parseTmpfs, "/t:noexec", engine.Mount{Type: engine.MountTmpfs, Target: "/t", NoExec: true}},
		{parseTmpfs, "/t:async", engine.Mount{}},
		{parseVolume, "/a:/b:rprivate", bind("/a", "/b", false)},
	} {
		got, err := c.parse(c.in)
		if c.want == (engine.Mount{}) {
			if err == nil {
				t.Errorf("%q: %+v, want an error", c.in, got)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.in, got, err, c.want)
		}
	}
}

func TestParseNumbers(t *testing.T) {
	for in, want := range map[string]engine.Bytes{
		"1": 1, "1b": 1, "2k": 2 << 10, "2KB": 2 << 10, "64m": 64 << 20, "64MiB": 64 << 20, "3g": 3 << 30,
		"": 0, "0": 0, "-1": 0, "m": 0, "1.5g": 0, "9223372036854775807g": 0, "1t": 0,
	} {
		if got, err := parseBytes(in); got != want || (err == nil) != (want != 0) {
			t.Errorf("size %q: %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0.5": time.Second / 2, "1m30s": 90 * time.Second, "none": engine.UnlimitedTime,
		"0": 0, "-1": 0, "": 0, "soon": 0, "1e400": 0,
	} {
		if got, err := parseTime(in); got != want || (err == nil) != (want != 0) {
			t.Errorf("time %q: %v, %v; want %v", in, got, err, want)
		}
	}
}

// FuzzFlags: whatever is passed, parsing returns an error or a value, never both, and never
// panics.
func FuzzFlags(f *testing.F) {
	for _, s := range []string{
		"/a:/b:ro", "type=bind,source=/a,target=/b", "/t:size=1m,mode=700", "nofile=5:5", "64MiB", "1m30s", "5:6", "A=b",
		`"`, "type=tmpfs,target=/,tmpfs-size=9999999999999999999",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		check := func(what string, v any, err error) {
			if err != nil && what == "size" && !reflect.ValueOf(v).IsZero() {
				t.Errorf("%s %q: %v and %v", what, s, v, err)
			}
		}
		m, err := parseVolume(s)
		check("volume", m, err)
		if err == nil && (m.Source == "" || m.Target == "") {
			t.Errorf("volume %q: %+v", s, m)
		}
		m, err = parseMount(s)
		check("mount", m, err)
		if err == nil {
			_ = engine.Spec{FS: engine.FS{Mounts: []engine.Mount{m}}}.Validate() // may refuse, must not panic
		}
		m, err = parseTmpfs(s)
		check("tmpfs", m, err)
		n, err := parseBytes(s)
		check("size", n, err)
		if err == nil && n <= 0 {
			t.Errorf("size %q: %d", s, n)
		}
		d, err := parseTime(s)
		check("time", d, err)
		if err == nil && d <= 0 {
			t.Errorf("time %q: %v", s, d)
		}
		u, err := parseUser(s)
		if (u == nil) != (err != nil) {
			t.Errorf("user %q: %v, %v", s, u, err)
		}
		var l engine.Limits
		_ = parseUlimit(s, &l) // may refuse, must not panic
		if err := (engine.Spec{Limits: l}).Validate(); err != nil && l.Files >= 4 {
			t.Errorf("ulimit %q: %v", s, err)
		}
	})
}

func TestReadEnvFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	for text, want := range map[string]string{
		"A=1\n# x\n\nB=2 3\n": "A=1 B=2 3", "\ufeffA=1\r\nexport B=2\r\n": "A=1 B=2", "A B=1\n": "", "export\tA=1\nexport  B=2\n": "A=1 B=2",
		"=1\n": "", "A=1\x00\n": "", "exported=1\n": "exported=1", "  A=1": "A=1",
		strings.Repeat("A=1\n", 1<<22+1): "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readEnvFile(file)
		if (err != nil) != (want == "") || strings.Join(got, " ") != want {
			t.Errorf("%.40q: %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := readEnvFile("/dev/zero"); err == nil {
		t.Error("/dev/zero: no error")
	}
}
