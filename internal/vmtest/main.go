//go:build linux

// Command vmtest runs test binaries in virtual machines that boot Debian's kernels, as root and as a user to whom systemd
// has delegated a cgroup. The machines have cgroup v2 alone, with all controllers. They see the host's files and cannot
// write them. They are emulated: some fifteen times slower than the host.
//
//	vmtest                                            everything in suite.go
//	vmtest -kernels 6.12 -as user X.test -test.run Y  one binary
//
// It needs Debian's apt, dpkg and xz, qemu-system-x86 and the go command, and no privileges. In the guest it is pid 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	runtime.LockOSThread() // the machine ends with the thread that has started it
	switch {
	case os.Getpid() == 1:
		guest()
	case os.Args[0] == "container":
		container()
	}
	l, one := lane{}, job{}
	kernels := flag.String("kernels", "6.1 6.12", "versions of Debian's kernels, separated by spaces")
	flag.StringVar(&one.As, "as", "root", "for one binary: root, user or container (root in a cgroup namespace)")
	flag.StringVar(&one.Dir, "dir", ".", "for one binary: its working directory, in the module")
	parameters := flag.String("append", "", "for one binary: parameters of the kernel")
	flag.StringVar(&l.arch, "arch", runtime.GOARCH,
		"amd64 or arm64; the host's programs do not run in a machine of the other")
	flag.StringVar(&l.cache, "cache", "bin/vm", "directory for kernels and test binaries")
	flag.DurationVar(&l.timeout, "timeout", 15*time.Minute, "for each machine")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	l.ctx = ctx
	err := l.prepare()
	if err == nil && flag.NArg() > 0 {
		one.Args = flag.Args()[1:]
		for _, v := range os.Environ() {
			if strings.HasPrefix(v, "TEGMEN_") {
				one.Env = append(one.Env, v)
			}
		}
		err = l.single(strings.Fields(*kernels), one, flag.Arg(0), *parameters)
	} else if err == nil {
		err = l.all(strings.Fields(*kernels))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmtest:", err)
		os.Exit(1)
	}
}

// A lane is the set of paths on the host for one architecture.
type lane struct {
	ctx           context.Context
	module, cache string // absolute
	arch, init    string // of the guest: its architecture, and this program for it
	timeout       time.Duration
}

func (l *lane) prepare() (err error) {
	out, err := exec.CommandContext(l.ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	l.module = strings.TrimSpace(string(out))
	if l.cache, err = filepath.Abs(l.cache); err != nil {
		return err
	}
	if err := os.MkdirAll(l.cache, 0o755); err != nil {
		return err
	}
	if l.arch == runtime.GOARCH {
		l.init, err = os.Executable()
		return err
	}
	l.init = filepath.Join(l.cache, "init."+l.arch)
	return l.goCommand("build", "-o", l.init, "./internal/vmtest")
}

// single runs one binary and prints its output.
func (l *lane) single(kernels []string, j job, program, parameters string) (err error) {
	if j.Program, err = filepath.Abs(program); err != nil {
		return err
	}
	dir, err := filepath.Abs(j.Dir)
	if err != nil {
		return err
	}
	if j.Dir, err = filepath.Rel(l.module, dir); err != nil || !filepath.IsLocal(j.Dir) {
		return fmt.Errorf("%s is not in the module", dir)
	}
	var errs []error
	for _, version := range kernels {
		k, err := l.fetch(version)
		if err != nil {
			return err
		}
		err = l.boot(k, parameters, orders{Module: l.module, Jobs: []job{j}}, func(e event) {
			fmt.Print(e.Output)
			if e.Ended && e.Code != 0 {
				errs = append(errs, fmt.Errorf("%s: exit status %d", version, e.Code))
			}
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
