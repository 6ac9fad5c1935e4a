//go:build darwin || (linux && (amd64 || arm64))

package procbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/ns"
	"github.com/tegmen-dev/tegmen/seatbelt"
)

func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// What bash would act on, change or lose is set after it, and the rest is passed
// through it.
func TestGiven(t *testing.T) {
	for _, c := range []struct {
		kv     string
		byBash bool
	}{
		{"HOME=/tmp", true}, {"PATH=/bin", true}, {"LC_ALL=C", true}, {"BASHFUL", false},
		{"BASH_ENV=/evil", false}, {"LD_PRELOAD=/evil", false}, {"DYLD_INSERT_LIBRARIES=/evil", false}, {"IFS=x", false},
		{"PS4=$(evil)", false}, {"SHELLOPTS=xtrace", false}, {"PWD=/x", false}, {"_=x", false}, {"POSIXLY_CORRECT=1", false},
	} {
		launcher, byEnv := given("/bin/true", []string{c.kv})
		if slices.Contains(launcher, c.kv) != c.byBash || slices.Contains(byEnv, c.kv) == c.byBash {
			t.Errorf("%s: bash has %q, env has %q", c.kv, launcher, byEnv)
		}
	}
	if _, byEnv := given("/a=b", []string{"LD_PRELOAD=x"}); byEnv != nil {
		t.Errorf("env would take the program for a variable: %q", byEnv)
	}
}

// The launcher lowers limits, closes what is not the program's, and becomes it, with
// its arguments and variables as they were given.
func TestLauncher(t *testing.T) {
	c := &box.Config{Umask: 0o22, Rlimits: []ns.Rlimit{{Name: "nofile", Soft: 33, Hard: 44}, {Name: "fsize", Soft: 1025, Hard: 4096}}}
	script := `ulimit -Sn; ulimit -Hn; ulimit -Sf; umask; echo "$0 $1 $LD_X"; ls /dev/fd | grep -cx 7`
	r := box.Request{
		Argv: []string{"sh", "-c", script, "-name", "$(arg) 'x'"},
		Env:  []string{"LD_X=ld", "PATH=/bin:/usr/bin"},
	}
	argv, env, err := commandLine(c, "", "/bin/bash", 3, r)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	said, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	var out strings.Builder
	cmd := &exec.Cmd{Path: argv[0], Args: argv, Env: env, Stdout: &out, Stderr: report,
		ExtraFiles: []*os.File{null, null, null, null, null}} // 3 becomes its standard error, 4 is the watcher's
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if err := report.Close(); err != nil {
		t.Error(err)
	}
	b := make([]byte, 1000)
	n, err := said.Read(b)
	if err != nil || string(b[:n]) != launched {
		t.Fatalf("the launcher says %q, %v", b[:n], err)
	}
	if got, want := out.String(), "33\n44\n2\n0022\n-name $(arg) 'x' ld\n0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCommandLine(t *testing.T) {
	c := &box.Config{NoExec: true, Seatbelt: &seatbelt.Config{}}
	r := box.Request{Argv: []string{"/PROGRAM", "arg"}, Terminal: true, TextDir: "/private/texts"}
	text := CommandLine(c, r, "/private")
	for _, want := range []string{"/usr/bin/sandbox-exec\n", "/private/workspace", "/private/texts", "/PROGRAM\narg\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if c.Seatbelt.Write != nil || c.Seatbelt.Program != "" {
		t.Errorf("the Config has changed: %+v", c.Seatbelt)
	}
	if text := CommandLine(&box.Config{}, box.Request{Argv: []string{"/p"}}, ""); strings.Contains(text, "sandbox-exec") {
		t.Errorf("without a profile:\n%s", text)
	}
}

// A program is looked for as the shell does it, and what is no program is told apart
// from what is not there.
func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("program"), nil, 0o755), os.WriteFile(at("text"), nil, 0o644),
		os.Mkdir(at("dir"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		want  string
		errno error
	}{
		{[]string{at("program")}, at("program"), nil},
		{[]string{at("none"), at("dir"), at("text"), at("program")}, at("program"), nil},
		{[]string{"program"}, "./program", nil},
		{[]string{at("none")}, "", syscall.ENOENT},
		{[]string{at("none"), at("text")}, "", syscall.EACCES},
		{[]string{at("dir"), at("none")}, "", syscall.EISDIR},
		{nil, "", syscall.ENOENT},
	} {
		got, err := findProgram(box.Request{Paths: c.paths, Argv: []string{"name"}, Dir: dir})
		var exec *box.ExecError
		if got != c.want || !errors.Is(err, c.errno) {
			t.Errorf("%v: %q, %v", c.paths, got, err)
		}
		if c.errno != nil && (!errors.As(err, &exec) || exec.Name != "name" || exec.NotFound != (c.errno == syscall.ENOENT)) {
			t.Errorf("%v: %#v", c.paths, err)
		}
	}
}

func TestSeatbeltError(t *testing.T) {
	exit := errors.New("exit status 71")
	if err := seatbeltError("anything", nil); err != nil {
		t.Errorf("got %v", err)
	}
	if err := seatbeltError("", exit); err != exit {
		t.Errorf("got %v", err)
	}
	if err := seatbeltError("bash: no", exit); !errors.Is(err, exit) || !strings.Contains(err.Error(), "bash: no") {
		t.Errorf("got %v", err)
	}
	err := seatbeltError("sandbox-exec: sandbox_apply: Operation not permitted", exit)
	if !errors.Is(err, launch.ErrUnsupported) || !errors.Is(err, syscall.EPERM) {
		t.Errorf("got %v", err)
	}
}

func TestDiagnose(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		host box.Host
		bad  []string
	}{
		{box.Host{OS: "darwin", UID: 501, SandboxExec: "/usr/bin/sandbox-exec"}, nil},
		{box.Host{OS: "darwin", TrySeatbelt: func() error { return refused }}, []string{"account", "sandbox-exec"}},
		{box.Host{OS: "linux", Contained: true}, nil},
	} {
		var bad []string
		for _, f := range (&Machine{host: c.host}).Diagnose() {
			if f.What == "" || f.Detail == "" || !f.OK && f.Remedy == "" {
				t.Errorf("%s: %+v", c.host.OS, f)
			}
			if !f.OK {
				bad = append(bad, f.What)
			}
		}
		if !slices.Equal(bad, c.bad) {
			t.Errorf("%s: not well: %v, want %v", c.host.OS, bad, c.bad)
		}
	}
}
