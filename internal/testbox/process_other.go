//go:build !linux

package testbox

import (
	"os/exec"
	"strings"
	"testing"
)

// Alive lists the pids of processes of the host whose command line contains a marker, arguments divided by spaces.
func Alive(t testing.TB, marker string) (pids []string) {
	t.Helper()
	out, err := exec.Command("ps", "axww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if strings.Contains(line, marker) && len(fields) > 2 && !strings.HasPrefix(fields[1], "Z") {
			pids = append(pids, fields[0])
		}
	}
	return pids
}
