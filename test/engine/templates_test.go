//go:build linux

package engine_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// An engine that gets another workspace all the time keeps what it needs for the last of them only: each is busy so long.
func TestManyWorkspacesOneAfterTheOther(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	eng := testbox.Open(t)
	dir := testbox.Workspace(t)
	twice := func(name string) {
		ws := filepath.Join(dir, name)
		if err := os.Mkdir(ws, 0o777); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			mount := testbox.Bind(ws, "/mnt")
			mount.ReadOnly = true
			if err := testbox.Start(t, eng, engine.Spec{FS: engine.FS{Mounts: []engine.Mount{mount}}}).Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 80 {
		twice(strconv.Itoa(i))
	}
	before := mountNamespaces(t)
	if len(before) == 0 || len(before) > 64 {
		t.Errorf("%d mount namespaces are kept", len(before))
	}
	for _, fd := range before { // open, so that no other gets its number
		pin, err := os.Open("/proc/self/fd/" + fd)
		if err != nil {
			t.Fatal(err)
		}
		defer pin.Close()
	}
	twice("last")
	for ns := range mountNamespaces(t) {
		if _, known := before[ns]; !known {
			return
		}
	}
	t.Error("nothing is kept for the last workspace")
}

// mountNamespaces are those that this process has open, with a descriptor of each.
func mountNamespaces(t *testing.T) map[string]string {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, e := range names {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "mnt:[") {
			found[to] = e.Name()
		}
	}
	return found
}
