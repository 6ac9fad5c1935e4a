//go:build linux

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/agent"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// BenchmarkTools measures a call of each tool, beside a command that does nothing.
func BenchmarkTools(b *testing.B) {
	box := testbox.Start(b, testbox.Open(b), engine.Spec{Keep: true})
	tools := toolsOf(b, box, agent.Options{})
	say(b, tools.WriteFile, agent.WriteInput{Path: "dir/small", Content: "one\ntwo\n"})
	say(b, tools.WriteFile, agent.WriteInput{Path: "large", Content: strings.Repeat("a line of text\n", 70_000)})
	n := 0
	for _, c := range []struct {
		name string
		call func(ctx context.Context) (string, error)
	}{
		{"true", func(ctx context.Context) (string, error) {
			_, err := box.CommandContext(ctx, "true").Run()
			return "", err
		}},
		{"bind", func(ctx context.Context) (string, error) {
			_, err := agent.Bind(ctx, box, agent.Options{})
			return "", err
		}},
		{"shell", func(ctx context.Context) (string, error) { return tools.Shell(ctx, agent.ShellInput{Command: ":"}) }},
		{"read_file", func(ctx context.Context) (string, error) {
			return tools.ReadFile(ctx, agent.ReadInput{Path: "dir/small"})
		}},
		{"read_file 1 MiB", func(ctx context.Context) (string, error) {
			return tools.ReadFile(ctx, agent.ReadInput{Path: "large", MaxChars: 1 << 21})
		}},
		{"write_file", func(ctx context.Context) (string, error) {
			n++
			return tools.WriteFile(ctx, agent.WriteInput{Path: "dir/small", Content: fmt.Sprint(n)})
		}},
		{"patch_file", func(ctx context.Context) (string, error) {
			n++
			return tools.PatchFile(ctx, agent.PatchInput{Path: "dir/small", FromLine: 1, ToLine: 1, Content: fmt.Sprint(n)})
		}},
		{"list_files", func(ctx context.Context) (string, error) {
			return tools.ListFiles(ctx, agent.ListInput{Path: "dir"})
		}},
		{"run_python", func(ctx context.Context) (string, error) {
			return tools.RunPython(ctx, agent.PythonInput{Code: "print(1)"})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.call(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("shell with a sandbox of its own", func(b *testing.B) {
		sh := agent.NewShell(testbox.Open(b), engine.Spec{}, agent.Options{})
		defer sh.Close()
		for b.Loop() {
			if got, err := sh.Run(b.Context(), ":", 1e9); err != nil || got.ExitCode != 0 {
				b.Fatal(got, err)
			}
		}
	})
}
