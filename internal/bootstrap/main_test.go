package bootstrap_test

import (
	"os"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// until waits for something outside of this process, and fails the test after 20 s.
func until(t testing.TB, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Error("waited 20 s in vain")
			return
		}
	}
}
