//go:build linux

// Package conformance_test shows what other systems for running models' code do, or should have done. A test's name
// says which one does so: codecell (the runtime of ToolRegistry), OpenChia, chuk (its virtual machine for tools) or
// axio (its tools for agents). Names without a system are about mistakes that several of them make.
package conformance_test

import (
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testbox"
)

func TestMain(m *testing.M) {
	os.Exit(testbox.Main(m, map[string]func(){"coder": codeHost}))
}
