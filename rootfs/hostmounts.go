package rootfs

import (
	"strconv"
	"strings"
)

// HostMount is a mount of the host.
type HostMount struct {
	Path string // where it is
	Root string // the directory of its file system that is seen there
	Type string // of the file system: "ext4"
	Dev  string // of the file system, the same for all its mounts: "8:1"
}

// ParseMounts reads the text of /proc/self/mountinfo. It skips lines that it does not
// understand.
func ParseMounts(text string) (mounts []HostMount) {
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(kind) == 0 {
			continue
		}
		mounts = append(mounts, HostMount{Path: unescape(f[4]), Root: unescape(f[3]), Type: kind[0], Dev: f[2]})
	}
	return mounts
}

// unescape replaces \040 and its like by what they stand for.
func unescape(s string) string {
	for i := 0; i+4 <= len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
			s = s[:i] + string([]byte{byte(c)}) + s[i+4:]
		}
	}
	return s
}

// layered are the types of file systems that are seen through an overlay.
var layered = []string{
	"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs", "nilfs2", "ubifs", "ocfs2",
	"gfs2", "tmpfs", "ramfs", "rootfs", "overlay", "nfs", "nfs4", "9p", "virtiofs", "ceph", "ecryptfs", "lustre", "gpfs",
	"fuse.mergerfs", "fuse.gocryptfs", "fuse.encfs", "fuse.cryfs",
}

// plain are types that an overlay refuses, since they ignore the case of names, or that
// cannot be written to. No program listens on a socket in one, so they are mounted.
var plain = []string{
	"squashfs", "erofs", "iso9660", "udf", "cramfs", "romfs", "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk",
	"hfs", "hfsplus", "apfs",
}
