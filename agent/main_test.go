//go:build linux

package agent_test

import (
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testbox"
)

func TestMain(m *testing.M) { os.Exit(testbox.Main(m, nil)) }
