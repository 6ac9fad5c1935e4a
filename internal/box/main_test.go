package box

import (
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// exitHelper in the environment makes the test binary a program that computes a little and exits with 3.
const exitHelper = "TEGMEN_TEST_EXIT"

func TestMain(m *testing.M) {
	if os.Getenv(exitHelper) != "" {
		sum := 0
		for i := range 1_000_000 {
			sum += i % 7
		}
		os.Exit(3 + sum*0)
	}
	os.Exit(testenv.Main(m))
}
