//go:build linux

package workspace_test

import (
	"context"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
)

// BenchmarkWorkspace measures what protecting a workspace adds to a start and an end.
func BenchmarkWorkspace(b *testing.B) {
	for _, c := range []struct {
		name    string
		o       engine.Options
		protect engine.ProtectMode
		make    func(testing.TB) string
	}{
		{"off", engine.Options{}, engine.ProtectOff, repository},
		{"off, no template", engine.Options{NoTemplates: true}, engine.ProtectOff, repository},
		{"watched, no repository", engine.Options{}, engine.ProtectWatch, empty},
		{"watched, a repository", engine.Options{}, engine.ProtectWatch, repository},
		{"strict, no repository", engine.Options{}, engine.ProtectStrict, empty},
		{"strict, a repository", engine.Options{}, engine.ProtectStrict, repository},
	} {
		b.Run(c.name, func(b *testing.B) {
			ws := c.make(b)
			eng, err := engine.Open(c.o)
			if err != nil {
				b.Fatal(err)
			}
			defer eng.Close()
			for b.Loop() {
				box, err := eng.Start(context.Background(), engine.Spec{FS: engine.FS{Workspace: ws, Protect: c.protect}})
				if err != nil {
					b.Fatal(err)
				}
				if err := box.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
