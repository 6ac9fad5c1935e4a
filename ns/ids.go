package ns

// IDs maps the one user of a sandbox to a user of the host (user_namespaces(7)).
type IDs struct {
	UID, GID         int // inside; 0 is root inside only
	HostUID, HostGID int // outside, in the parent user namespace
}

// Rlimit is a resource limit (getrlimit(2)). A guest can raise the soft limit up
// to the hard one.
type Rlimit struct {
	Name       string // as ulimit names it: as, core, cpu, fsize, memlock, nice, nofile, nproc or rtprio
	Soft, Hard uint64 // in the limit's unit: bytes, seconds or a number; 1<<64-1 is no limit
}
