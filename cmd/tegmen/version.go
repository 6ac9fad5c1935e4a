package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionMain(args []string) (int, error) {
	if err := noArguments("version", args); err != nil {
		return 0, err
	}
	version := "devel"
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		version = b.Main.Version
	}
	fmt.Printf("tegmen %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0, nil
}

// noArguments refuses all arguments except a request for help.
func noArguments(name string, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) == 1 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help"):
		return errHelp
	}
	return fmt.Errorf("%s: takes no arguments", name)
}
