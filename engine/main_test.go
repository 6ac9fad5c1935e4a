package engine_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// TestMain leaves out the examples that cannot run here, since an example cannot skip
// itself. What TEGMEN_TEST_REQUIRE lists is not left out, and fails.
func TestMain(m *testing.M) {
	flag.Parse()
	workspace := newDir()
	overlay := engine.Spec{FS: engine.FS{Workspace: workspace, WorkspaceMode: engine.WorkspaceOverlay}}
	for _, c := range []struct {
		feature, examples string
		spec              engine.Spec
	}{
		{"userns", "^Example", engine.Spec{}},
		{"overlay", "^ExampleSandbox_Commit$", overlay},
	} {
		if err := try(c.spec); err != nil && !required(c.feature) {
			fmt.Fprintf(os.Stderr, "examples %s are left out: %v\n", c.examples, err)
			leaveOut(c.examples)
		}
	}
	if err := os.Remove(workspace); err != nil {
		panic(err)
	}
	os.Exit(testenv.Main(m))
}

// required reports whether a feature must be there, as testenv.Need has it.
func required(feature string) bool {
	list := strings.Split(os.Getenv("TEGMEN_TEST_REQUIRE"), ",")
	return slices.Contains(list, feature) || slices.Contains(list, "all")
}

// leaveOut adds to the flag -skip.
func leaveOut(pattern string) {
	skip := flag.Lookup("test.skip").Value
	if given := skip.String(); given != "" {
		pattern += "|" + given
	}
	if err := skip.Set(pattern); err != nil {
		panic(err)
	}
}

// try starts a sandbox, and reports why examples with it cannot run here.
func try(s engine.Spec) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("they show Linux, and this is %s", runtime.GOOS)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		return err
	}
	eng, err := engine.Open(engine.Options{NoTemplates: true, NoCgroups: true})
	if err != nil {
		return err
	}
	defer eng.Close()
	box, err := eng.Start(context.Background(), s)
	if err != nil {
		return err
	}
	return box.Close()
}
