package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/workspace"
)

// A directory of the host that commands write to, and one that they only read.
func Example_files() {
	project, input := newDir(), newDir()
	defer os.RemoveAll(project)
	defer os.RemoveAll(input)
	if err := os.WriteFile(filepath.Join(input, "numbers"), []byte("3\n1\n2\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{FS: engine.FS{
		Workspace: project,
		Mounts:    []engine.Mount{{Source: input, Target: "/input", ReadOnly: true}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	if _, err := box.CommandContext(ctx, "sort", "-o", "sorted", "/input/numbers").Output(); err != nil {
		log.Fatal(err)
	}
	sorted, err := os.ReadFile(filepath.Join(project, "sorted"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", sorted)
	_, err = box.CommandContext(ctx, "touch", "/input/x").Output()
	fmt.Println(err)
	// Output:
	// "1\n2\n3\n"
	// touch: exit status 1
}

// Changes that are looked at before they are made.
func ExampleSandbox_Commit() {
	project := newDir()
	defer os.RemoveAll(project)
	file := filepath.Join(project, "greeting")
	if err := os.WriteFile(file, []byte("hello\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{FS: engine.FS{
		Workspace:     project,
		WorkspaceMode: engine.WorkspaceOverlay,
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	if _, err := box.CommandContext(ctx, "sed", "-i", "s/hello/goodbye/", "greeting").Output(); err != nil {
		log.Fatal(err)
	}
	if err := box.Close(); err != nil { // nothing goes on writing
		log.Fatal(err)
	}

	before, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("still %s", before)
	if err := box.Diff(ctx, os.Stdout); err != nil {
		log.Fatal(err)
	}
	if _, err := box.Commit(ctx, workspace.CommitOptions{}); err != nil {
		log.Fatal(err)
	}
	after, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("now %s", after)
	// Output:
	// still hello
	// diff --git a/greeting b/greeting
	// --- a/greeting
	// +++ b/greeting
	// @@ -1,1 +1,1 @@
	// -hello
	// +goodbye
	// now goodbye
}

// newDir makes a directory for guests to use.
func newDir() string {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	if os.Geteuid() == 0 { // guests then run as the owner of the workspace, and never as root
		if err := os.Chown(dir, 1000, 1000); err != nil {
			log.Fatal(err)
		}
	}
	return dir
}
