package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// TestMain installs the command: in scripts and wherever a test looks in PATH, tegmen
// is a copy of this test binary. What such a child executes counts as covered.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"tegmen": main, "renamed": main})
}

// leakChecked fails the tests if they leave descriptors, processes, mounts or
// goroutines behind.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int { return testenv.Main(l.m) }
