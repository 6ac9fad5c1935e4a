package protect

import (
	"path"
	"testing"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// Each name is protected once, for a reason, and none lies beneath another.
func TestProtectedNames(t *testing.T) {
	names := allNames()
	for i, n := range names {
		for j, m := range names {
			if i != j && rootfs.Within(n, m) {
				t.Errorf("%s and %s", n, m)
			}
		}
		if path.Clean(n) != n || path.IsAbs(n) {
			t.Errorf("%s", n)
		}
	}
	for _, g := range protected {
		if g.why == "" {
			t.Errorf("%v: no reason", g.names)
		}
	}
}
