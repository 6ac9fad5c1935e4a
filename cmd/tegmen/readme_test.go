//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// TestReadme runs each command of the README's consoles and compares its output with the
// lines below it. The commands of one block share a directory.
func TestReadme(t *testing.T) {
	testenv.Need(t, testenv.UserNS, testenv.Program("python3"), testenv.Program("go"))
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../example/tools/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, ok := bytes.Cut(example, []byte("package main\n\n"))
	if !ok || !strings.Contains(string(readme), "```go\n"+string(shown)+"```\n") {
		t.Error("the README does not show example/tools/main.go as it is")
	}
	blocks := strings.Split(string(readme), "```console\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("%d consoles in the README", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		dir := testenv.Dir(t)
		if os.Geteuid() == 0 {
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range strings.Split(block, "$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = dir
			if strings.HasPrefix(command, "go run ./") {
				cmd.Dir = root
			}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			_ = cmd.Run() // only its output counts
			if got := out.String(); got != want {
				t.Errorf("$ %s\ngot\n%s\nwant\n%s", command, got, want)
			}
		}
	}
}
