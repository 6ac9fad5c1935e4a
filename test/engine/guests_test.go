//go:build linux

package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A shell script calls tools, even from jobs and from children.
func TestCodeInShell(t *testing.T) { testbox.EachLevel(t, testCodeInShell) }

func testCodeInShell(t *testing.T, l testbox.Level) {
	const source = `set -eu
test "$(add 1 2)" = 3
test "$(tool add a=1 b=2)" = 3
for i in 1 2 3 4 5; do ( test "$(add $i $i)" = $((i + i)) || echo wrong ) & done
wait
sh -c '. "$TEGMEN_TOOLS"; add 20 22'
status=0
add a=x b=1 2>"$TMPDIR/error" || status=$?
case $(cat "$TMPDIR/error") in 'add: invalid_params: '*) echo "$status $text $list $1" ;; esac
ls -A "$TMPDIR"
result "[1, $(add 1 1)]"
exit 3`
	for _, shell := range []string{"sh", "bash"} {
		t.Run(shell, func(t *testing.T) {
			testenv.Need(t, testenv.Program(shell))
			res := code(t, l, engine.Spec{}, engine.Code{Language: shell, Source: source, Args: []string{"arg"},
				Vars: map[string]any{"text": "a b", "list": []int{1}}}, testbox.Adders())
			if string(res.Code.Value) != "[1, 2]" && string(res.Code.Value) != "[1,2]" ||
				string(res.Stdout) != "42\n2 a b [1] arg\nerror\n" || res.ExitCode != 3 || len(res.Stderr) > 0 ||
				res.Code.Tools["add"].Calls != 9 {
				t.Errorf("%s, value %s, stdout %q, stderr %q, %+v", res.Outcome, res.Code.Value, res.Stdout, res.Stderr, res.Code.Tools)
			}
		})
	}
}

// A program written in Go is a guest.
func TestGuestInGo(t *testing.T) {
	testenv.Need(t, testenv.Program("go"))
	dir := testenv.Dir(t)
	program := filepath.Join(dir, "guest")
	if out, err := testbox.GoBuild(program, "./testdata/goguest").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	// The bootstraps of interpreters must not be linked into it.
	if linked, err := os.ReadFile(program); err != nil || !bytes.Contains(linked, []byte("TEGMEN_FD")) ||
		bytes.Contains(linked, []byte("_tegmen_arguments")) || bytes.Contains(linked, []byte("import sys")) ||
		bytes.Contains(linked, []byte("tegmen:guest")) {
		t.Errorf("texts for other languages are linked, or nothing is: %v", err)
	}
	tools := testbox.Adders()
	broker.Add(tools, "ns.steps", "", func(ctx context.Context, _ struct{}) (string, error) {
		return "done", errors.Join(broker.Progress(ctx, 1), broker.Progress(ctx, 2))
	})
	box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountBind, Source: dir,
		Target: dir, ReadOnly: true}}}})
	cmd := box.CommandContext(testbox.Within(t, time.Minute), program, "500")
	cmd.Tools = tools
	res, err := cmd.Run()
	if err != nil {
		t.Fatal(err)
	}
	var ns time.Duration
	if err := json.Unmarshal(res.Code.Value, &ns); err != nil || res.Outcome != engine.OutcomeOK || res.Code.Tools["add"].Calls != 500 {
		t.Fatalf("%s, value %s, stderr %q, %+v", res.Outcome, res.Code.Value, res.Stderr, res.Code.Tools)
	}
	t.Logf("a call takes %v", ns)
}
