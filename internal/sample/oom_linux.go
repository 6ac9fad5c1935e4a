package sample

import (
	"bytes"
	"os"
)

// OOMKills returns how many processes the kernel's OOM killer has killed on the whole
// machine since boot, or 0 if that is unknown (before Linux 4.13).
func OOMKills() int64 {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return parseOOMKills(text)
}

func parseOOMKills(vmstat []byte) int64 {
	_, rest, _ := bytes.Cut(vmstat, []byte("\noom_kill "))
	n, _, _, _ := number(rest)
	return int64(n)
}
