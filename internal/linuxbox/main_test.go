//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
