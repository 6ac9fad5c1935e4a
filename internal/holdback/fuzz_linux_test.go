package holdback

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// What is taken for harmless, git reads as nothing but the settings of gitKeys.
func FuzzHarmlessGitConfig(f *testing.F) {
	testenv.Need(f, testenv.Program("git"))
	for _, text := range []string{
		"[core]\n\tbare = false\n", "[remote \"origin\"]\n\turl = x\n", "[user]\nname=\"a;b\" # c\n", "[core]\nbare=a\\\nb\n",
		"[branch \"x\"]\nmerge = \"a\n\"", "[user]\rname=x\n[core]fsmonitor=1", "[user]\nname = 'x\n[core]\nfsmonitor=e'",
		"[user]\nname = \"x\n[core]\nfsmonitor=e\n",
	} {
		f.Add(text)
	}
	file := filepath.Join(f.TempDir(), "config")
	f.Fuzz(func(t *testing.T, text string) {
		if !harmlessGitConfig(text) {
			return
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "config", "--file", file, "--name-only", "--null", "--list").Output()
		if err != nil {
			return // git refuses it, and executes nothing
		}
		for _, key := range strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }) {
			section, name := key[:strings.Index(key, ".")], key[strings.LastIndex(key, ".")+1:]
			if strings.Count(key, ".") > 1 {
				section += ".*"
			}
			known := false
			for _, k := range gitKeys[section] {
				known = known || k == name
			}
			if !known {
				t.Errorf("%q: git reads %q", text, key)
			}
		}
	})
}
