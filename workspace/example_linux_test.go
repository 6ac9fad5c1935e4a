package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/tegmen-dev/tegmen/workspace"
)

// example returns an overlay over a directory in which a guest has written two files.
func example(dir string) (*workspace.Overlay, error) {
	upper, lower := filepath.Join(dir, "upper"), filepath.Join(dir, "lower")
	write := func(name, text string) error { return os.WriteFile(name, []byte(text), 0o644) }
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(lower, 0o755),
		write(lower+"/greeting", "Hello\n"), write(upper+"/greeting", "Hello, world\n"),
		write(upper+"/.npmrc", "registry=http://example.com\n")); err != nil {
		return nil, err
	}
	up, err := os.Open(upper)
	if err != nil {
		return nil, err
	}
	low, err := os.Open(lower)
	return &workspace.Overlay{Upper: up, Lower: low, Since: time.Now().Add(time.Second)}, err
}

// List the changes, show them as a patch, and commit them unless a rule forbids it.
func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	o, err := example(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer o.Upper.Close()
	defer o.Lower.Close()
	ctx := context.Background()

	changes, err := o.Changes(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range changes {
		fmt.Println(c.Kind, c.Type, c.Path)
	}
	if err := o.Diff(ctx, os.Stdout); err != nil {
		log.Fatal(err)
	}

	o.Rules.Protected = []string{".npmrc"}
	if _, err := o.Commit(ctx, workspace.CommitOptions{}); errors.Is(err, workspace.ErrProtected) {
		fmt.Println(err)
	}
	o.Rules.Protected = nil
	done, err := o.Commit(ctx, workspace.CommitOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(done.Applied), "changes applied")
	// Output:
	// created file .npmrc
	// modified file greeting
	// diff --git a/.npmrc b/.npmrc
	// new file mode 100644
	// --- /dev/null
	// +++ b/.npmrc
	// @@ -0,0 +1,1 @@
	// +registry=http://example.com
	// diff --git a/greeting b/greeting
	// --- a/greeting
	// +++ b/greeting
	// @@ -1,1 +1,1 @@
	// -Hello
	// +Hello, world
	// nothing was committed: protected: ".npmrc"
	// 2 changes applied
}
