//go:build linux

package engine_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// A program opens its streams by name, whoever made them: as /dev/stdin, /dev/stdout, /dev/stderr or in /proc.
func TestStreamsAreOpenedByName(t *testing.T) {
	testbox.EachLevel(t, func(t *testing.T, l testbox.Level) {
		box := l.Sandbox(t, engine.Spec{Keep: true})
		res := testbox.Run(t, box, "sh", "-c", "cat /dev/stdin /proc/self/fd/0; echo out >/dev/stdout; echo err >/dev/stderr")
		if string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
			t.Errorf("without streams: %s, %q, %q", res.Outcome, res.Stdout, res.Stderr)
		}

		inRead, inWrite, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		outRead, outWrite, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		for _, f := range []*os.File{inRead, outRead} {
			defer f.Close()
		}
		if _, err := inWrite.WriteString("in\n"); err != nil {
			t.Fatal(err)
		}
		_ = inWrite.Close()
		cmd := box.Command("sh", "-c", "cat /dev/stdin >/dev/stdout; echo lost >/dev/stderr")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, null
		run, err := cmd.Run()
		_ = outWrite.Close()
		var out bytes.Buffer
		_, _ = out.ReadFrom(outRead)
		if err != nil || run.Outcome != engine.OutcomeOK || out.String() != "in\n" {
			t.Errorf("the caller's: %+v, %v, %q", run, err, out.String())
		}
	}, testbox.Confined...)
}
