//go:build linux

package bench_test

import (
	"os/exec"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// workspace measures what it costs to protect a workspace: one that is empty, and a checkout of git.
func (w *bench) workspace() []row {
	eng := testbox.Open(w)
	in := func(dir string) func() {
		spec := w.spec()
		spec.FS.Workspace = dir
		return func() {
			plan, err := eng.Compile(spec)
			if err != nil {
				w.Fatal(err)
			}
			w.whole(eng, plan)
		}
	}
	m := contest(400, in(""), in(testbox.Workspace(w)), in(w.checkout()))
	return []row{
		{"start in an empty workspace", "without a workspace", m[1], m[0], 1.2},
		{"start in a checkout of git", "without a workspace", m[2], m[0], 1.2},
	}
}

// checkout makes a directory of git with a commit, which guests own, whoever runs this.
func (w *bench) checkout() string {
	dir := testenv.Dir(w)
	cmd := exec.Command("sh", "-c",
		"git init -q && git -c user.email=a@example.org -c user.name=A commit -q --allow-empty -m first")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	testbox.GiveTo(w, dir, testbox.Nobody)
	return dir
}

// BenchmarkWorkspace is the part of the table about workspaces.
func BenchmarkWorkspace(b *testing.B) {
	testenv.Need(b, testenv.UserNS, testenv.Program("git"))
	for _, r := range newBench(b).workspace() {
		b.Log(r)
	}
}
