package cgroup_test

import (
	"fmt"

	"github.com/tegmen-dev/tegmen/cgroup"
)

// Check whether a place offers the controllers that some limits need.
func ExampleSettings_Controllers() {
	limits := cgroup.Settings{Memory: 512 << 20, Pids: 64, CPUs: 1.5}
	need := limits.Controllers()
	fmt.Println(need)

	place := cgroup.Place{Dir: "/sys/fs/cgroup/example", Controllers: []string{"memory", "pids"}}
	fmt.Println(place.Has("memory", "pids"), place.Has(need...))
	// Output:
	// [cpu memory pids]
	// true false
}
