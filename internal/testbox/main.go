//go:build unix

// Package testbox starts engines and sandboxes for tests, at each level of isolation, and finds the processes that
// they leave. It is for tests only.
//
// Each package of tests begins with
//
//	func TestMain(m *testing.M) { os.Exit(testbox.Main(m, nil)) }
//
// which fails on leaks, and continues with
//
//	box := testbox.Sandbox(t, engine.Spec{})
//	res := testbox.Run(t, box, "true")
//
// A test whose promise also holds without namespaces runs in a subtest for each level:
//
//	testbox.EachLevel(t, func(t *testing.T, l testbox.Level) {
//		box := l.Sandbox(t, engine.Spec{})
//	})
package testbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

const helperEnv = "TEGMEN_TEST_HELPER"

// Main runs the tests of a package and returns the exit code: 1 at least if they left anything behind. In a copy of the
// test binary that Helper has made it runs that helper instead. A helper does what cannot be done in the test's own
// process.
func Main(m *testing.M, helpers map[string]func()) int {
	if f, ok := helpers[os.Getenv(helperEnv)]; ok {
		f()
		return 0
	}
	return testenv.Main(m)
}

// Helper returns a command that runs a helper of Main in a copy of this test binary. Its standard error is the test's.
func Helper(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// StartHelper starts a helper. The caller reads what it prints from stdout, and waits for it.
func StartHelper(t testing.TB, name string, args ...string) (cmd *exec.Cmd, stdout io.Reader) {
	t.Helper()
	cmd = Helper(t, name, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdout
}

// ModuleFile returns the absolute name of a file of this module. The working directory must be in the module, as it is
// for tests: the name under which the source was compiled is another one in a virtual machine.
func ModuleFile(t testing.TB, name string) string {
	t.Helper()
	path, err := moduleFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func moduleFile(name string) (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, name), nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is in no module")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
