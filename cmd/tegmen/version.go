package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionMain([]string) (int, error) {
	version := "devel"
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		version = b.Main.Version
	}
	fmt.Printf("tegmen %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0, nil
}
