package rootfs

import "golang.org/x/sys/unix"

// Stat returns the status of an open file, even of a descriptor opened with O_PATH.
// Besides what Identify reads, the mode, the owner, the size and the number of links
// are valid (statx(2), Linux 4.11).
func Stat(fd int) (st unix.Statx_t, err error) {
	const mask = StatMask | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_GID | unix.STATX_SIZE
	err = unix.Statx(fd, "", StatFlags, mask, &st)
	return st, err
}

// The arguments of statx(2) that Identify needs.
const (
	StatFlags = unix.AT_EMPTY_PATH | unix.AT_STATX_DONT_SYNC        // with a descriptor and an empty path
	StatMask  = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_BTIME // at least
)

// Identify returns the identity in a result of statx(2).
func Identify(st *unix.Statx_t) Identity {
	id := Identity{
		Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino,
		Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR,
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id
}
