//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A test is those of a package that the pattern names, as each of these users.
type test struct {
	pkg, pattern string
	as           string
	parameters   string // of the kernel; rows with the same share a machine
	programs     bool   // it runs the host's, so the architecture has to be the host's
	once         bool   // takes long: only in the last of the kernels
}

// tests are what runs in each machine. What is slow on the host is not here.
var tests = []test{
	{"test/vm", "^TestMachine$", "root user container", "", true, false},
	{"test/vm", "^TestSystemdScope$", "root", "", true, true},
	{"internal/launch", ".", "root user", "", false, false},
	{"rootfs", ".", "user", "", false, false},
	{"ns", ".", "user", "", false, false},
	{"internal/setup", ".", "root user", "", false, false},
	{"engine", ".", "root user", "", false, false},
	{"seccomp", "^Test[^F]", "user", "", false, false}, // all filters with all calls take long
	{"test", limits, "root", "", true, false},
	{"test", ends, "root", "", true, true},
	{"test", walls, "user", "", true, false},
	{"test", limits, "user", "", true, true},
	{"test", "^TestOutcomes$", "container", "", true, false},
	{pkg: "test", pattern: bombs, as: "root", programs: true, once: true},
	{pkg: "test", pattern: outcomes, as: "user", programs: true, once: true},
	{pkg: "test", pattern: "^TestOutcomes$|^TestBombs$/^malloc$", as: "user", parameters: "cgroup_disable=memory", programs: true, once: true},
}

// Those of package test, by what they are about. An emulated machine takes
// seconds of CPU time for what should take none, so that is not measured there.
const (
	limits   = "^TestCgroup|^TestLimits|^TestOutcomes$"
	bombs    = "^TestBombs"
	outcomes = "^TestUsage(Of|Is)|^TestOutcome(Of|Killed)"
	ends     = "TestNothingSurvivesClose|TestTimeout|TestKeepKills|TestLost|TestSignalGroup|TestTracer|TestStrays|TestCanceled"
	walls    = "TestHostExecutable|TestStandardStreams|TestNoUserNamespaceInside|TestKeyring|TestPrivilegesAreGone|TestNoExec|TestGuestIsNeverHostRoot|" +
		"TestFilesBelong|TestSandboxesAreApart|TestStrictWithout|TestBareFiles"
)

// userBus is of Debian's dbus-user-session.
const userBus = "/usr/lib/systemd/user/dbus.socket"

// required is what no test may be skipped for: TEGMEN_TEST_REQUIRE.
func required(version string) string {
	list := "userns,cgroup,sh,bash,python3,setpriv,unshare,busctl,dbus-daemon," + userBus
	if version != "6.1" { // whose Landlock is of version 2
		list += ",landlock"
	}
	return list
}

// all runs tests, and says how each did.
func (l *lane) all(kernels []string) error {
	tests := slices.Clone(tests)
	if l.arch != runtime.GOARCH {
		tests = slices.DeleteFunc(tests, func(t test) bool { return t.programs })
	}
	binaries := make(map[string]string)
	for _, t := range tests {
		if binaries[t.pkg] == "" {
			binaries[t.pkg] = filepath.Join(l.cache, path.Base(t.pkg)+"."+l.arch+".test")
			if err := l.goCommand("test", "-c", "-o", binaries[t.pkg], "./"+t.pkg); err != nil {
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
		for _, t := range tests {
			if t.once && version != kernels[len(kernels)-1] {
				continue
			}
			for as := range strings.FieldsSeq(t.as) {
				jobs[t.parameters] = append(jobs[t.parameters], job{As: as, Program: binaries[t.pkg], Dir: t.pkg,
					Args: []string{"-test.run", t.pattern, "-test.timeout", "5m"},
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

// report runs one machine and prints a line for each of its jobs, and the end
// of what a job that fails has said.
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
		fmt.Printf("%-4s %s %-9s %-16s %-4s %5.1fs %s\n", k.version, k.arch, j.As, j.Dir, word, e.Seconds, parameters)
		if e.Code != 0 {
			fmt.Printf("%s\n", tail(output))
		}
		at, output = at+1, nil
	})
	if err != nil && at < len(jobs) {
		fmt.Printf("%-4s %s %-9s %-16s FAIL\n%s\n", k.version, k.arch, jobs[at].As, jobs[at].Dir, tail(output))
	}
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d failed", failed, len(jobs)))
	}
	return err
}

func tail(output []byte) []byte { return output[max(0, len(output)-8000):] }
