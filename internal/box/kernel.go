package box

import "fmt"

// KernelAtLeast compares the first two numbers of a release, "6.1.0-18-amd64",
// with a version, "5.14".
func KernelAtLeast(release, version string) bool {
	var major, minor, wantMajor, wantMinor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	if n, _ := fmt.Sscanf(version, "%d.%d", &wantMajor, &wantMinor); n < 2 {
		return false
	}
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}
