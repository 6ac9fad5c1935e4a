// Package testenv finds out what this machine can test, and makes tests fail that leave
// something behind. It is for tests only.
//
// A test calls Need for the features that it needs. If one is missing, Need skips the test
// with the reason, or fails it if TEGMEN_TEST_REQUIRE lists the feature (names separated by
// commas, or "all"), so that a green run cannot hide a skip.
package testenv

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Feature is something that a test may need.
type Feature struct {
	Name  string // as in TEGMEN_TEST_REQUIRE
	probe func() error
}

var (
	// UserNS needs a machine and account that may create user namespaces.
	UserNS = Feature{"userns", sync.OnceValue(probeSandbox)} // once: it starts a copy of the test binary
	// Cgroup needs a process that may create children of its own cgroup v2, which has the
	// controllers memory and pids.
	Cgroup = Feature{"cgroup", tryCgroup}
	// Root needs a process that runs as root.
	Root = Feature{"root", func() error {
		if os.Geteuid() != 0 {
			return errors.New("not root")
		}
		return nil
	}}
	// User needs a process that does not run as root.
	User = Feature{"user", func() error {
		if os.Geteuid() == 0 {
			return errors.New("root")
		}
		return nil
	}}
)

// Seatbelt needs a Mac whose sandbox-exec(1) works.
var Seatbelt = Feature{"seatbelt", func() error {
	if runtime.GOOS != "darwin" {
		return fmt.Errorf("this is %s", runtime.GOOS)
	}
	confined := func(profile string) *exec.Cmd {
		return exec.Command("/usr/bin/sandbox-exec", "-p", "(version 1)"+profile, "/usr/bin/true")
	}
	if confined("(deny default)").Run() == nil {
		return errors.New("sandbox-exec ran what its profile refuses")
	}
	out, err := confined("(allow default)").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}}

// Landlock needs a kernel with a version of Landlock or a later one. Its name is
// "landlock".
func Landlock(version int) Feature {
	return Feature{"landlock", func() error {
		if v := landlockVersion(); v < version {
			return fmt.Errorf("version %d, want %d", v, version)
		}
		return nil
	}}
}

// Libseccomp needs a build with the tag libseccomp; attempt is the error of compiling a
// policy. Its name is "libseccomp".
func Libseccomp(attempt error) Feature {
	return Feature{"libseccomp", func() error { return attempt }}
}

// Try needs what a function tries, which returns why it is not there.
func Try(name string, try func() error) Feature { return Feature{name, try} }

// Program needs a program in PATH that this machine can execute, whose name is the feature's. An emulated machine may
// have the host's.
func Program(name string) Feature {
	return Feature{name, func() error {
		at, err := exec.LookPath(name)
		if err != nil {
			return err
		}
		f, err := elf.Open(at)
		if err != nil {
			return nil // a script, or no Linux
		}
		defer f.Close()
		if own, ok := machines[runtime.GOARCH]; ok && f.Machine != own {
			return fmt.Errorf("%s is a program for %s", at, f.Machine)
		}
		return nil
	}}
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// File needs a file or directory of the host, whose path is the feature's name.
func File(path string) Feature {
	return Feature{path, func() error {
		_, err := os.Stat(path)
		return err
	}}
}

// Suid needs a directory in which set-user-ID bits have effect: it is not on a file system
// mounted nosuid, as /tmp often is. Its name is "suid".
func Suid(dir string) Feature {
	return Feature{"suid", func() error {
		if nosuid(dir) {
			return fmt.Errorf("%s is mounted nosuid", dir)
		}
		return nil
	}}
}

// Need skips or fails the test if a feature is missing.
func Need(t testing.TB, features ...Feature) {
	t.Helper()
	for _, f := range features {
		err := f.probe()
		if err == nil {
			continue
		}
		if required(f.Name) {
			t.Fatalf("%s is required here: %v", f.Name, err)
		}
		t.Skipf("needs %s: %v", f.Name, err)
	}
}

func required(name string) bool {
	list := strings.Split(os.Getenv("TEGMEN_TEST_REQUIRE"), ",")
	return slices.Contains(list, name) || slices.Contains(list, "all") && name != Root.Name && name != User.Name
}

func probeSandbox() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("sandboxes on %s", runtime.GOOS)
	}
	return tryUserNamespace()
}

// Main runs the tests of a package and returns their exit code, or 1 if they have left
// goroutines, descriptors, child processes or mounts behind. Use it in TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
func Main(m *testing.M) int {
	before := takeSnapshot()
	state, err := os.MkdirTemp("", "tegmen-test-state-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		return 1
	}
	defer os.RemoveAll(state)
	os.Setenv("XDG_STATE_HOME", state) // what is held back is not the user's
	code := m.Run()
	if leaks := before.leaks(); len(leaks) > 0 {
		fmt.Fprintf(os.Stderr, "testenv: the tests left something behind:\n\t%s\n", strings.Join(leaks, "\n\t"))
		return max(code, 1)
	}
	return code
}

// Long skips a test with -short and with the race detector. It is for tests that take seconds, in which the engine does
// one thing after the other.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
	NoRace(t)
}

// Twice reports whether this is root's run of tests that an ordinary user runs as well: see .ci/run.
func Twice() bool { return os.Geteuid() == 0 && os.Getenv("TEGMEN_TEST_TWICE") != "" }

// Once skips a test in root's run if there is another by an ordinary user. It is for what takes minutes and shows the same
// for both.
func Once(t testing.TB) {
	t.Helper()
	if Twice() {
		t.Skip("an ordinary user runs it as well")
	}
}

// NoRace skips a test with the race detector. It is for tests that measure, or that are about the guest.
func NoRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("shows the race detector nothing")
	}
}
