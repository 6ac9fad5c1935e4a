// Package mountinfo reads the list of mounts of a process (proc_pid_mountinfo(5)).
package mountinfo

import (
	"slices"
	"strings"
)

// Mount is a line of /proc/PID/mountinfo.
type Mount struct {
	Device   string // of its file system, the same for all of that one's mounts: "8:1"
	Root     string // the directory of its file system that is seen
	Point    string // where it is
	Type     string // of its file system: "ext4"
	Writable bool   // the mount; its file system may not be
}

// Parse returns the mounts that a text lists, in its order. It skips lines that it does
// not understand.
func Parse(text string) (mounts []Mount) {
	for line := range strings.Lines(text) {
		// id, parent, device, root, mount point, options, further fields, "-", type
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		mark := slices.Index(f[6:], "-") // not before: a mount point may be called so
		if mark < 0 || 6+mark+1 >= len(f) {
			continue
		}
		mounts = append(mounts, Mount{
			Device: f[2], Root: unescape(f[3]), Point: unescape(f[4]), Type: f[6+mark+1],
			Writable: strings.HasPrefix(f[5], "rw"),
		})
	}
	return mounts
}

// unescape decodes what the kernel encodes in paths.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
