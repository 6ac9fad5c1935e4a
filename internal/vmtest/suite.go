//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A row is a selection of a package's tests, run as each of the users.
type row struct {
	pkg        string
	tests      string // the pattern of go test -run; "" is all
	as         string // users, separated by spaces
	parameters string // of the kernel; rows with the same share a machine
	programs   bool   // it runs the host's programs, so the architecture must be the host's
	once       bool   // it takes long: only with the last of the kernels
}

// rows are what runs in each machine. What is slow on the host is not here: an emulated machine takes seconds of CPU
// time for what should take none.
var rows = []row{
	{pkg: "internal/vmtest", tests: "^TestMachine$", as: "root user container", programs: true},
	{pkg: "internal/vmtest", tests: "^TestSystemdScope$", as: "root", programs: true, once: true},
	{pkg: "internal/launch", as: "root user"},
	{pkg: "internal/setup", as: "root user"},
	{pkg: "internal/box", as: "user"},
	{pkg: "rootfs", as: "user"},
	{pkg: "ns", as: "user"},
	{pkg: "engine", tests: "^Test", as: "root user", programs: true},
	{pkg: "engine", tests: "Golden|Plan|Protect|JSON|Schema|Validate", as: "user"}, // what starts nothing
	{pkg: "seccomp", tests: "^Test[^F]", as: "user"},                               // all filters with all calls take long

	{pkg: "test/engine", tests: limits, as: "root", programs: true},
	{pkg: "test/engine", tests: limits, as: "user", programs: true, once: true},
	{pkg: "test/engine", tests: "^TestOutcomes$", as: "container", programs: true},
	{pkg: "test/engine", tests: outcomes, as: "user", programs: true, once: true},
	{pkg: "test/engine", tests: "^TestBombsAtOnce", as: "root", programs: true, once: true},
	{pkg: "test/attack", tests: "^TestBombs", as: "root", programs: true, once: true},

	// Lifetimes: sandboxes end, and nothing keeps them from it.
	{pkg: "engine", tests: "^TestStartWhileClosing$", as: "root", programs: true, once: true},
	{pkg: "test/engine", as: "root", programs: true, once: true,
		tests: "^Test(NothingSurvivesClose|Timeout|KeepKills|Lost|SignalGroup|Canceled)"},
	{pkg: "test/attack", as: "root", programs: true, once: true,
		tests: "^Test(TracerCannotHoldBackAnEnd|OrphansDoNotKeepASandboxFromEnding)$"},

	// Walls: what a guest must not reach.
	{pkg: "test/engine", as: "user", programs: true,
		tests: "^Test(PrivilegesAreGone|NoExec|GuestIsNeverHostRoot|SandboxesAreApart|LandlockFiles)"},
	{pkg: "test/attack", as: "user", programs: true,
		tests: "^Test(HostExecutable|StandardStreams|NoUserNamespaceInside|Keyring|StrictWithout)"},
	{pkg: "test/workspace", tests: "^TestFilesBelongToTheUser$", as: "user", programs: true},

	{pkg: "test/engine", tests: "^TestOutcomes$", as: "user", parameters: noMemory, programs: true, once: true},
	{pkg: "test/attack", tests: "^TestBombs$/^malloc$", as: "user", parameters: noMemory, programs: true, once: true},
}

const (
	limits   = "^TestCgroup|^TestLimits|^TestOutcomes$"
	outcomes = "^TestUsage(Of|Is)|^TestOutcome(Of|Killed)"
	noMemory = "cgroup_disable=memory"

	// otherLevels are subtests that show nothing about these kernels.
	otherLevels = "^Test/^(landlock|process_groups)$"
)

// userBus is a file of Debian's dbus-user-session.
const userBus = "/usr/lib/systemd/user/dbus.socket"

// required is the value of TEGMEN_TEST_REQUIRE: no test may be skipped for want of these.
func required(version string) string {
	list := "userns,cgroup,sh,bash,python3,setpriv,unshare,busctl,dbus-daemon," + userBus
	if version != "6.1" { // whose Landlock is of version 2
		list += ",landlock"
	}
	return list
}

// all runs the rows and prints how each ended.
func (l *lane) all(kernels []string) error {
	rows := slices.Clone(rows)
	if l.arch != runtime.GOARCH {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.programs })
	}
	binaries := make(map[string]string)
	for _, r := range rows {
		if binaries[r.pkg] == "" {
			binaries[r.pkg] = filepath.Join(l.cache, strings.ReplaceAll(r.pkg, "/", "-")+"."+l.arch+".test")
			if err := l.goCommand("test", "-c", "-o", binaries[r.pkg], "./"+r.pkg); err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, version := range kernels {
		k, err := l.fetch(version)
		if err != nil {
			return err
		}
		jobs := make(map[string][]job)
		for _, r := range rows {
			if r.once && version != kernels[len(kernels)-1] {
				continue
			}
			for as := range strings.FieldsSeq(r.as) {
				jobs[r.parameters] = append(jobs[r.parameters], job{As: as, Program: binaries[r.pkg], Dir: r.pkg,
					Args: []string{"-test.run", r.tests, "-test.skip", otherLevels, "-test.timeout", "5m"},
					Env:  []string{"TEGMEN_TEST_REQUIRE=" + required(version) + "," + as}})
			}
		}
		for _, parameters := range slices.Sorted(maps.Keys(jobs)) {
			if err := l.report(k, parameters, jobs[parameters]); err != nil {
				errs = append(errs, fmt.Errorf("%s %s: %w", version, parameters, err))
			}
		}
	}
	return errors.Join(errs...)
}

// report runs one machine and prints a line for each of its jobs, and the end of the output of a failed one.
func (l *lane) report(k kernel, parameters string, jobs []job) error {
	at, failed := 0, 0
	var output []byte
	err := l.boot(k, parameters, orders{Module: l.module, Jobs: jobs}, func(e event) {
		output = append(output, e.Output...)
		if !e.Ended {
			return
		}
		j := jobs[at]
		word := "ok"
		if e.Code != 0 {
			word = "FAIL"
			failed++
		}
		fmt.Printf("%-4s %s %-9s %-18s %-4s %5.1fs %s\n", k.version, k.arch, j.As, j.Dir, word, e.Seconds, parameters)
		if e.Code != 0 {
			fmt.Printf("%s\n", tail(output))
		}
		at, output = at+1, nil
	})
	if err != nil && at < len(jobs) {
		fmt.Printf("%-4s %s %-9s %-18s FAIL\n%s\n", k.version, k.arch, jobs[at].As, jobs[at].Dir, tail(output))
	}
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d failed", failed, len(jobs)))
	}
	return err
}

func tail(output []byte) []byte { return output[max(0, len(output)-8000):] }

// goCommand runs the go command for static programs.
func (l *lane) goCommand(args ...string) error {
	cmd := exec.CommandContext(l.ctx, "go", args...)
	cmd.Dir = l.module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+l.arch)
	return quiet(cmd)
}
