//go:build linux

package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A mount goes when the host removes the directory that it is on. Sandboxes that are started later have it all the same.
func TestMountsOnWhatTheHostReplaces(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	eng := testbox.Open(t)
	outer, inner := testbox.Workspace(t), testbox.Workspace(t)
	if err := os.WriteFile(filepath.Join(inner, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		sub := filepath.Join(outer, "sub")
		if err := errors.Join(os.RemoveAll(sub), os.Mkdir(sub, 0o755)); err != nil {
			t.Fatal(err)
		}
		spec := engine.Spec{FS: engine.FS{Mounts: []engine.Mount{testbox.Bind(outer, "/x"), testbox.Bind(inner, "/x/sub")}}}
		if got := testbox.Output(t, testbox.Start(t, eng, spec), "ls /x/sub"); got != "file" {
			t.Fatalf("the inner mount has %q", got)
		}
	}
}
