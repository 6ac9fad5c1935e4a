//go:build libseccomp

// Command generate writes the files that package seccomp embeds: the built-in
// profiles, compiled by libseccomp for each architecture, and the numbers of system
// calls.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tegmen-dev/tegmen/seccomp"
)

var architectures = []string{"amd64", "arm64"}

func main() {
	log.SetFlags(0)
	for _, step := range []func(arch string) error{numbers, profiles} {
		for _, arch := range architectures {
			if err := step(arch); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// numbers extracts system call numbers from golang.org/x/sys, which follows the kernel
// closely.
func numbers(arch string) error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, m := range regexp.MustCompile(`SYS_(\w+)\s+= (\d+)`).FindAllStringSubmatch(string(text), -1) {
		if m[1] == "ARCH_SPECIFIC_SYSCALL" {
			continue // marks where architecture-specific calls begin
		}
		fmt.Fprintf(&b, "%s %s\n", strings.ToLower(m[1]), m[2])
	}
	return os.WriteFile("builtin/calls_"+arch+".txt", []byte(b.String()), 0o644)
}

// profiles compiles with the numbers embedded in this build, so generate must run
// twice when they change.
func profiles(arch string) error {
	for _, name := range seccomp.Names() {
		f, err := seccomp.CompileBuiltin(name, arch)
		if err != nil {
			return fmt.Errorf("%s for %s: %w", name, arch, err)
		}
		fmt.Printf("%s for %s: %d instructions\n", name, arch, len(f))
		if err := os.WriteFile("builtin/"+name+"_"+arch+".bpf", f.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
