// Package testenv says what this machine can test, and makes sure that tests leave nothing behind. It is for tests only.
//
// A test asks for what it needs with Need, which skips the test, with the reason, if that is missing. If the name is
// listed in TEGMEN_TEST_REQUIRE (separated by commas, or "all"), Need fails instead: a green run cannot hide a skip.
package testenv

import (
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
	// UserNS is a machine and account that allow user namespaces, and so sandboxes.
	UserNS = Feature{"userns", sync.OnceValue(probeSandbox)} // once: it starts a copy of the test binary
	// Cgroup is a process that can limit memory and processes by cgroups of version 2: it may make cgroups beneath its
	// own, which has these controllers.
	Cgroup = Feature{"cgroup", tryCgroup}
	// Root is a process that runs as root.
	Root = Feature{"root", func() error {
		if os.Geteuid() != 0 {
			return errors.New("not root")
		}
		return nil
	}}
	// User is a process that does not run as root.
	User = Feature{"user", func() error {
		if os.Geteuid() == 0 {
			return errors.New("root")
		}
		return nil
	}}
)

// Seatbelt is a Mac on which sandbox-exec(1) confines.
var Seatbelt = Feature{"seatbelt", func() error {
	if runtime.GOOS != "darwin" {
		return fmt.Errorf("this is %s", runtime.GOOS)
	}
	if exec.Command("/usr/bin/sandbox-exec", "-p", "(version 1)(deny default)", "/usr/bin/true").Run() == nil {
		return errors.New("sandbox-exec ran what its profile refuses")
	}
	out, err := exec.Command("/usr/bin/sandbox-exec", "-p", "(version 1)(allow default)", "/usr/bin/true").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}}

// Landlock is a kernel with at least that version of Landlock. Its name is "landlock".
func Landlock(version int) Feature {
	return Feature{"landlock", func() error {
		if v := landlockVersion(); v < version {
			return fmt.Errorf("version %d, want %d", v, version)
		}
		return nil
	}}
}

// Libseccomp is a build with the tag libseccomp, as the error of an attempt to compile a policy shows. Its name is
// "libseccomp".
func Libseccomp(attempt error) Feature {
	return Feature{"libseccomp", func() error { return attempt }}
}

// Program is a program in PATH.
func Program(name string) Feature {
	return Feature{name, func() error {
		_, err := exec.LookPath(name)
		return err
	}}
}

// File is a file or directory of the host. Its name is the path.
func File(path string) Feature {
	return Feature{path, func() error {
		_, err := os.Stat(path)
		return err
	}}
}

// Suid is a directory in which set-user-ID files work: its file system is not mounted nosuid, as /tmp often is. Its
// name is "suid".
func Suid(dir string) Feature {
	return Feature{"suid", func() error {
		if nosuid(dir) {
			return fmt.Errorf("%s is mounted nosuid", dir)
		}
		return nil
	}}
}

// Need skips the test if a feature is missing. It fails the test instead if TEGMEN_TEST_REQUIRE lists its name.
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

// Main runs the tests of a package and fails if they leave anything: goroutines, descriptors, child processes, mounts.
// Use it in TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
func Main(m *testing.M) int {
	before := survey()
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

// NoRace skips a test with the race detector. It is for tests that measure, or that are about the guest.
func NoRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("shows the race detector nothing")
	}
}
