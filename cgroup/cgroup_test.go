package cgroup

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const (
	pure   = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	hybrid = "30 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n31 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n32 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	all    = "cpuset cpu io memory pids"
)

// machine is a view of files, of which those under the writable directories may
// be written to.
func machine(mounts, self string, files map[string]string, writable ...string) view {
	return view{
		mounts: mounts, self: self, read: func(name string) string { return files[name] },
		writable: func(names ...string) error {
			for _, dir := range writable {
				if names[0] == dir {
					return nil
				}
			}
			return errors.New("permission denied")
		},
		others: func(dir string) (pids []int) {
			for range strings.Fields(files[dir+"/others"]) {
				pids = append(pids, 7)
			}
			return pids
		},
	}
}

func TestFind(t *testing.T) {
	const root, user = "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/user@1000.service"
	for _, c := range []struct {
		name string
		view view
		want Place  // without Reason and Remedy
		why  string // in the reason
	}{
		{"root of a machine", machine(pure, "0::/system.slice/x.service\n", map[string]string{
			root + "/cgroup.controllers": all, root + "/system.slice/cgroup.type": "domain", root + "/system.slice/x.service/cgroup.type": "domain",
			root + "/system.slice/cgroup.controllers": all, root + "/system.slice/x.service/cgroup.controllers": all, root + "/system.slice/x.service/others": "7", root + "/others": "1 2",
		}, root, root+"/system.slice", root+"/system.slice/x.service"), Place{Dir: root + "/system.slice", Controllers: strings.Fields("cpu cpuset io memory pids")}, ""},
		{"alone in a delegated scope", machine(pure, "0::/user.slice/user@1000.service/run.scope\n", map[string]string{
			user + "/run.scope/cgroup.controllers": "memory pids", user + "/run.scope/cgroup.type": "domain", user + "/run.scope/memory.max": "max\n", user + "/memory.max": "1048576\n", root + "/memory.max": "",
		}, user+"/run.scope", user), Place{Dir: user + "/run.scope", Controllers: []string{"memory", "pids"}, Leave: true, Memory: 1 << 20}, ""},
		{"an engine has moved before", machine(pure, "0::/user.slice/user@1000.service/run.scope/tegmen-host-1-2-3\n", map[string]string{
			user + "/run.scope/cgroup.controllers": "memory pids", user + "/run.scope/cgroup.type": "domain",
		}, user+"/run.scope/tegmen-host-1-2-3", user+"/run.scope", user), Place{Dir: user + "/run.scope", Controllers: []string{"memory", "pids"}}, ""},
		{"in a session's scope", machine(pure, "0::/user.slice/session-3.scope\n", map[string]string{}), Place{}, "this user may not change cgroup"},
		{"delegated, but not alone", machine(pure, "0::/a\n", map[string]string{
			root + "/a/cgroup.controllers": "memory pids", root + "/a/cgroup.type": "domain", root + "/a/others": "1 2 3 4",
		}, root+"/a"), Place{}, "other processes are in cgroup /sys/fs/cgroup/a (pid 7, 7, 7, …)"},
		{"no controllers", machine(pure, "0::/a\n", map[string]string{root + "/a/cgroup.controllers": "hugetlb", root + "/a/cgroup.type": "domain"}, root+"/a"),
			Place{}, "lacks the memory or pids controller: it has hugetlb"},
		{"in a container's own namespace", machine("29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/\n", map[string]string{
			root + "/cgroup.controllers": all, root + "/cgroup.type": "domain",
		}, root), Place{Dir: root, Controllers: strings.Fields("cpu cpuset io memory pids"), Leave: true}, ""},
		{"mounted from a part of the hierarchy", machine("29 23 0:26 /docker/a\\040b /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/a b/x\n", map[string]string{
			root + "/x/cgroup.controllers": all, root + "/x/cgroup.type": "domain",
		}, root+"/x"), Place{Dir: root + "/x", Controllers: strings.Fields("cpu cpuset io memory pids"), Leave: true}, ""},
		{"outside of what is mounted", machine(pure, "0::/../x\n", nil), Place{}, "outside the hierarchy mounted at"},
		{"hybrid", machine(hybrid, "4:memory:/\n0::/\n", map[string]string{"/sys/fs/cgroup/unified/cgroup.controllers": "hugetlb"}), Place{V1: true}, "as cgroup v1"},
		{"none", machine("", "", nil), Place{}, "no cgroup v2 is mounted"},
		{"in none", machine(pure, "", nil), Place{}, "in no cgroup v2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.view.find()
			why := got.Reason
			got.Reason, got.Remedy = "", ""
			if !reflect.DeepEqual(got, c.want) || !strings.Contains(why, c.why) || (c.why == "" && got.Dir == "") {
				t.Errorf("got %+v because %q\nwant %+v because %q", got, why, c.want, c.why)
			}
		})
	}
}

func TestFindIn(t *testing.T) {
	v := machine(pure, "0::/a\n", map[string]string{"/sys/fs/cgroup/b/cgroup.controllers": "pids", "/sys/fs/cgroup/b/cgroup.type": "domain"}, "/sys/fs/cgroup/b")
	for _, dir := range []string{"/b", "b/", "/sys/fs/cgroup/b"} {
		if p := v.findIn(dir); p.Dir != "/sys/fs/cgroup/b" || !p.Has("pids") || p.Has("pids", "memory") {
			t.Errorf("%s: %+v", dir, p)
		}
	}
	if p := v.findIn("/c"); p.Dir != "" || p.Has() || p.Reason == "" {
		t.Errorf("one that may not be written to: %+v", p)
	}
}

func TestSettings(t *testing.T) {
	s := Settings{Memory: 1 << 20, MemoryHigh: 1 << 19, Pids: 3, CPUs: 0.015, CPUWeight: 7, CPUSet: "1", IO: []IO{{Device: "8:0", ReadBPS: 1, WriteIOPS: 2}, {Device: "8:16", WriteBPS: 3, ReadIOPS: 4}}}
	want := []file{
		{"memory.swap.max", "0"}, {"memory.max", "1048576"}, {"memory.high", "524288"}, {"pids.max", "3"}, {"cpu.max", "1500 100000"}, {"cpu.weight", "7"}, {"cpuset.cpus", "1"},
		{"io.max", "8:0 rbps=1 wiops=2"}, {"io.max", "8:16 wbps=3 riops=4"},
	}
	if got := s.files(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if got := s.Controllers(); strings.Join(got, " ") != "cpu cpuset io memory pids" {
		t.Errorf("controllers %v", got)
	}
	if got := (Settings{}).Controllers(); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestStat(t *testing.T) {
	files := map[string]string{
		"cpu.stat":            "usage_usec 3\nuser_usec 2\nsystem_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 5\n",
		"memory.events.local": "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 5\n",
		"memory.current":      "10\n", "memory.peak": "20\n", "pids.current": "5\n", "pids.peak": "6\n",
		"pids.events": "max 7\n", "io.stat": "8:0 rbytes=1 wbytes=2 rios=3\n8:16 rbytes=10 wbytes=20\n",
	}
	want := Stat{CPU: 3 * time.Microsecond, User: 2 * time.Microsecond, System: time.Microsecond, Throttled: 4, ThrottledTime: 5 * time.Microsecond,
		Memory: 10, PeakMemory: 20, Pids: 5, PeakPids: 6, Read: 11, Written: 22, Events: Events{1, 2, 3, 4, 7}}
	read := func(name string) string { return files[name] }
	if got := stat(strings.Fields(all), read); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	files["pids.events.local"] = "max 1\n"
	if got := stat(strings.Fields(all), read); got.Events.ForkFail != 1 {
		t.Errorf("forks refused in the cgroup itself: %d", got.Events.ForkFail)
	}
	if got := stat([]string{"cpu"}, read); got.CPU == 0 || got.PeakMemory != 0 || got.Events != (Events{}) || got.Read != 0 {
		t.Errorf("without controllers: %+v", got)
	}
	if got := stat(strings.Fields(all), func(string) string { return "garbage\n\x00 \n= =\n" }); got != (Stat{}) {
		t.Errorf("of garbage: %+v", got)
	}
}
