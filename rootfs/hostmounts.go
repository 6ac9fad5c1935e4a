package rootfs

// HostMount is a mount of the host.
type HostMount struct {
	Path string // where it is
	Root string // the directory of its file system that is seen there
	Type string // of the file system: "ext4"
	Dev  string // of the file system, the same for all its mounts: "8:1"
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
