//go:build linux

package workspace_test

import (
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testbox"
)

func TestMain(m *testing.M) { os.Exit(testbox.Main(m, map[string]func(){"workspace": workspaceHost})) }
