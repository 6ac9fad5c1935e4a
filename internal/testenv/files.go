package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Dir makes a directory that everyone can reach: guests of root are nobody. Directories of t.TempDir are private, and
// too long for the name of a socket.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tegmen-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// DockerProfile returns the file of docker's own seccomp profile, from the module that docker keeps it in.
func DockerProfile(t testing.TB) []byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/moby/profiles/seccomp").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "default.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Golden compares got with a file, which it writes first if update is set.
func Golden(t testing.TB, file, got string, update bool) {
	t.Helper()
	if update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}
