package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionMain(args []string) (int, error) {
	if len(args) != 0 {
		return 0, fmt.Errorf("version: takes no arguments")
	}
	version := "devel"
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		version = b.Main.Version
	}
	fmt.Printf("tegmen %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0, nil
}
