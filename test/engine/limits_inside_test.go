//go:build linux

package engine_test

import (
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// Runtimes look for their limits in a cgroup of version 2 that they find mounted; see Go's internal/runtime/cgroup, the
// JDK's cgroupSubsystem_linux.cpp, and libuv, which looks without finding it.
func TestLimitsInside(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	for _, name := range []string{"whoever limits", "cgroup"} {
		t.Run(name, func(t *testing.T) {
			if name == "cgroup" {
				testenv.Need(t, testenv.Cgroup)
			}
			eng := testbox.Open(t)
			spec := engine.Spec{Keep: true, Limits: engine.Limits{Memory: 256 * engine.MiB, Pids: 64}}
			cpus := "max 100000"
			if name == "cgroup" {
				spec.Limits.CPUs, cpus = 0.5, "50000 100000"
			}
			box := testbox.Start(t, eng, spec)
			for _, which := range []string{"first", "second"} {
				got := testbox.Output(t, box, "cd /sys/fs/cgroup; cat memory.max pids.max cpu.max; sed -n 's/^0::/in /p' /proc/self/cgroup; "+
					"while read a b c root at rest; do case $rest in *' - cgroup2 '*) echo $root $at;; esac; done </proc/self/mountinfo; "+
					"ls; (echo 1 >memory.max) 2>/dev/null || echo kept; awk '$1 == \"memory\" { print $2 }' /proc/cgroups")
				want := "268435456\n64\n" + cpus + "\nin /\n"
				if !strings.HasPrefix(got, want) || !strings.Contains(got, "\n/ /sys/fs/cgroup\n") || !strings.HasSuffix(got, "kept\n0") ||
					strings.Contains(got, "cgroup.procs") {
					t.Errorf("the %s command: %s", which, got)
				}
			}
		})
	}
}

func TestNoLimitsInside(t *testing.T) {
	testenv.Need(t, testenv.UserNS)
	spec := engine.Spec{Limits: engine.Limits{Memory: engine.UnlimitedBytes, Pids: engine.UnlimitedCount}}
	if got := testbox.Output(t, testbox.Start(t, testbox.Open(t), spec), "cd /sys/fs/cgroup; cat memory.max pids.max cpu.max"); got !=
		"max\nmax\nmax 100000" {
		t.Errorf("%q", got)
	}
}
