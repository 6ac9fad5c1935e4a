//go:build linux

// Package tools_test runs what people run every day in a writable workspace: build tools, test runners, package managers,
// git. Each works inside as on the host, and on the host while a sandbox lives in the same directory.
package tools_test

import (
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testbox"
)

func TestMain(m *testing.M) { os.Exit(testbox.Main(m, nil)) }
