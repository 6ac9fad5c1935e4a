//go:build linux

package main

import (
	"log"
	"os"

	"golang.org/x/sys/unix"
)

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func mount(source, target, kind string, flags uintptr, data string) {
	must(os.MkdirAll(target, 0o755))
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		log.Panicf("mount %s (%s): %v", target, kind, err)
	}
}

// bind mounts a file or directory of the host at its path, even if the directories above are closed to users.
func bind(source, target string) {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		log.Panicf("mount %s on %s: %v", source, target, err)
	}
}
