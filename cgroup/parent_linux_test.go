package cgroup

import "testing"

func TestAbandoned(t *testing.T) {
	started := func(pid int) string { return map[int]string{5: "100"}[pid] }
	for name, want := range map[string]bool{
		"tegmen-9-5-100-1": false, "tegmen-9-5-99-1": true, "tegmen-9-6-100-3": true, "tegmen-9-6-100": true,
		"tegmen-8-6-100-3": false, "tegmen-9-x-1-1": false, "tegmen-9-0-1-1": false, "tegmen": false, "other-9-6-100-3": false, "tegmen-6.scope": false, "tegmen-9-6": false,
	} {
		if got := abandoned(name, "tegmen-9-7-200", started); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
