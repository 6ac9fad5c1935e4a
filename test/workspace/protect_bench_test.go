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
		name  string
		o     engine.Options
		allow []string
	}{
		{"open", engine.Options{}, []string{"."}},
		{"open, no template", engine.Options{NoTemplates: true}, []string{"."}},
		{"protected", engine.Options{}, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			ws := repository(b)
			eng, err := engine.Open(c.o)
			if err != nil {
				b.Fatal(err)
			}
			defer eng.Close()
			for b.Loop() {
				box, err := eng.Start(context.Background(), engine.Spec{FS: engine.FS{Workspace: ws, AllowWrite: c.allow}})
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
