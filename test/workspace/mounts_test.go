//go:build linux

package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A path that was swapped after Compile is refused, whatever it leads to now.
func TestChangedSinceCompile(t *testing.T) {
	eng := testbox.Open(t)
	for _, c := range []struct {
		name string
		swap func(dir string) error
	}{
		{"another directory", func(d string) error {
			return errors.Join(os.Rename(d+"/src", d+"/old"), os.Mkdir(d+"/src", 0o755))
		}},
		{"a link", func(d string) error {
			return errors.Join(os.Rename(d+"/src", d+"/old"), os.Symlink("/etc", d+"/src"))
		}},
		{"a link to itself", func(d string) error {
			return errors.Join(os.Rename(d+"/src", d+"/old"), os.Symlink(d+"/old", d+"/src"))
		}},
		{"a file", func(d string) error {
			return errors.Join(os.Remove(d+"/src"), os.WriteFile(d+"/src", nil, 0o644))
		}},
	} {
		for _, templates := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				dir := testenv.Dir(t)
				if err := os.Mkdir(dir+"/src", 0o755); err != nil {
					t.Fatal(err)
				}
				plan, err := eng.Compile(engine.Spec{FS: engine.FS{Mounts: []engine.Mount{testbox.Bind(dir+"/src", "/m")}}})
				if err != nil {
					t.Fatal(err)
				}
				if templates {
					// The first use makes the next start prepare a template.
					if box, err := eng.StartPlan(context.Background(), plan); err != nil {
						t.Fatal(err)
					} else if err := box.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.swap(dir); err != nil {
					t.Fatal(err)
				}
				box, err := eng.StartPlan(context.Background(), plan)
				if err == nil {
					_ = box.Close()
				}
				if !errors.Is(err, engine.ErrChanged) {
					t.Errorf("got %v, want ErrChanged", err)
				}
			})
		}
	}
}

// Files that a guest writes belong, on the host, to the user it ran as: never to root.
func TestFilesBelongToTheUser(t *testing.T) {
	dir := testenv.Dir(t)
	uid := os.Getuid()
	if uid == 0 {
		uid = 4321
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	box := testbox.Sandbox(t, engine.Spec{FS: engine.FS{Workspace: dir}, User: &engine.User{}})
	if got := testbox.Output(t, box, "touch f; mkdir d; id -u; pwd; stat -c %u f"); got != "0\n"+dir+"\n0" {
		t.Errorf("inside: %q", got)
	}
	for _, name := range []string{"f", "d"} {
		if got := testbox.Owner(t, filepath.Join(dir, name)); got != uid {
			t.Errorf("%s belongs to uid %d outside, want %d", name, got, uid)
		}
	}
}
