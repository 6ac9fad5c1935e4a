//go:build linux

package engine_test

import (
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testbox"
)

func TestMain(m *testing.M) {
	os.Exit(testbox.Main(m, map[string]func(){
		"host":       hostToBeKilled,
		"limited":    limitedHost,
		"undumpable": undumpable,
	}))
}
