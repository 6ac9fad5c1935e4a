package sample

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Sampler measures one sandbox. It must not be used concurrently.
//
// A sample takes 15 µs and 5 µs for each process as long as the sum of resident memory is
// below the limit, and little more if the processes' shares are known and cannot have
// changed. Reading shares takes 60 µs a process and 7 ms for each GiB resident in it;
// above the limit, another 6 µs for each process of the host. See BenchmarkSample.
type Sampler struct {
	procFD int // a procfs, or -1
	root   int // the pid in it from which all others descend
	tree   bool
	space  uint64 // the inode of the pid namespace; 0 for a tree
	tmpfs  []tmpfs
	// stack is the start of this process's stack. A process with the same one is still
	// being started in the memory of this process, which does not belong to the sandbox.
	// A guest cannot know the address.
	stack uint64

	known   map[int]*process
	parents map[int]int
	pids    []int // from the last listing
	at      int   // the index in pids at which the next pass begins
	pass    uint64
	ended   uint64 // ticks of processes that have ended
	most    uint64 // the most ticks reported so far
	memfds  held
	round   round
	hidden  hidden
	dirents []byte
	text    []byte
}

// Open returns a Sampler for a sandbox: the first process of its pid namespace, with a
// procfs on /proc, has the given pid on the host. The caller must keep the pid from being
// reused, as that of a child that is not waited for, and call Open before any guest runs.
// The Sampler keeps the sandbox's tmpfs alive until Close. onDisk lists the mount points
// of overlays whose upper layer is on disk.
func Open(pid int, onDisk ...string) (*Sampler, error) {
	s := newSampler(1)
	dir := "/proc/" + strconv.Itoa(pid)
	if err := s.openProc(dir + "/root/proc"); err != nil {
		return nil, err
	}
	host, err := statAt(unix.AT_FDCWD, dir+"/stat", s.text)
	if err == nil {
		var in stat
		in, err = statAt(s.procFD, "1/stat", s.text)
		if err == nil && in.start != host.start {
			err = &fs.PathError{Op: "open", Path: dir + "/root/proc", Err: errors.New("the procfs of other processes")}
		}
	}
	if err == nil {
		s.space, err = pidSpace(pid)
	}
	if err == nil {
		err = s.openTmpfs(dir, onDisk)
	}
	if err == nil {
		err = s.openOwn()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenTree returns a Sampler for a process of the host and all its descendants. The process
// must adopt orphans (PR_SET_CHILD_SUBREAPER). A sample takes another 4 µs for each process
// of the host. As with Open, the pid must not be reused.
func OpenTree(pid int) (*Sampler, error) {
	s := newSampler(pid)
	s.tree = true
	err := s.openProc("/proc")
	if err == nil {
		err = s.openOwn()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newSampler(root int) *Sampler {
	return &Sampler{
		procFD: -1, root: root, known: make(map[int]*process), parents: make(map[int]int),
		dirents: make([]byte, 32<<10), text: make([]byte, 4096),
	}
}

// openOwn reads this process's stack address and the device of memfds.
func (s *Sampler) openOwn() error {
	own, err := statAt(unix.AT_FDCWD, "/proc/self/stat", s.text)
	if err != nil {
		return err
	}
	s.stack = own.stack
	return s.memfds.open()
}

func (s *Sampler) openProc(path string) (err error) {
	if s.procFD, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		s.procFD = -1
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(s.procFD, &st); err != nil {
		return &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	if st.Type != unix.PROC_SUPER_MAGIC {
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("not a procfs")}
	}
	return nil
}

// Close closes what Open has opened. It is safe to call it twice.
func (s *Sampler) Close() (err error) {
	if s.procFD >= 0 {
		err = unix.Close(s.procFD)
	}
	for _, m := range s.tmpfs {
		err = errors.Join(err, unix.Close(m.fd))
	}
	s.procFD, s.tmpfs = -1, nil
	return err
}

// timeBudget is how long a sample reads processes. The next sample begins with the rest.
const timeBudget = 50 * time.Millisecond

// Sample measures the sandbox. If its memory may be above the limit, in bytes, Sample takes
// the time to measure it exactly; 0 means no limit. The error is os.ErrProcessDone if pid
// 1 has ended, and otherwise an errno such as EMFILE, after which the Sampler remains
// usable.
func (s *Sampler) Sample(limit int64) (now Sample, err error) {
	begin := time.Now()
	s.pass++
	if err := s.list(); err != nil {
		return now, err
	}
	for _, pid := range s.pids {
		if p := s.known[pid]; p != nil {
			p.seen = s.pass
		}
	}
	if now.Partial, err = s.refreshAll(begin); err != nil {
		return now, err
	}
	if p := s.known[s.root]; !slices.Contains(s.pids, s.root) || p != nil && p.state == 'Z' {
		return now, os.ErrProcessDone
	}
	now.CPU = s.cpu()
	for _, p := range s.known {
		now.Processes += p.threads
	}
	if now.Hidden, err = s.hidden.find(s); err != nil {
		return now, err
	}
	if err := s.memory(&now, limit); err != nil {
		return now, err
	}
	now.Cost = time.Since(begin)
	return now, nil
}

// refreshAll reads the processes of the list, as many as timeBudget allows, and retires
// those that have ended.
func (s *Sampler) refreshAll(begin time.Time) (partial bool, err error) {
	var ended []*process
	done := 0
	for ; done < len(s.pids); done++ {
		if done%32 == 31 && time.Since(begin) > timeBudget {
			partial = true
			break
		}
		old, err := s.refresh(s.pids[(s.at+done)%len(s.pids)])
		if err != nil {
			return false, err
		}
		if old != nil {
			ended = append(ended, old)
		}
	}
	s.at = (s.at + done) % len(s.pids)
	for _, p := range s.known {
		if p.seen != s.pass {
			ended = append(ended, p)
		}
	}
	s.retire(ended)
	return partial, nil
}

// list lists the processes that exist.
func (s *Sampler) list() error {
	s.pids = s.pids[:0]
	if err := s.entries(s.procFD, 0, func(name []byte, _ int64) bool {
		if pid, ok := parsePID(name); ok {
			s.pids = append(s.pids, pid)
		}
		return true
	}); err != nil {
		return &fs.PathError{Op: "readdir", Path: "/proc", Err: err}
	}
	var err error
	if s.tree {
		err = s.descendants()
	}
	if err == nil && len(s.pids) == 0 {
		err = os.ErrProcessDone
	}
	return err
}

// refresh reads the state of a process. It returns the process that had its pid before, if
// that has ended.
func (s *Sampler) refresh(pid int) (gone *process, err error) {
	p := s.known[pid]
	if p == nil {
		p = newProcess(pid)
	}
	st, err := statAt(s.procFD, p.name+"/stat", s.text)
	if isGone(err) {
		p.seen = 0
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if p.seen != 0 && p.start != st.start {
		gone, p = p, newProcess(pid)
	}
	if s.known[pid] != p {
		s.known[pid], p.born = p, s.pass
	}
	p.stat, p.seen = st, s.pass
	if st.stack == s.stack && st.stack != 0 {
		p.size, p.rss = 0, 0
	}
	if st.state == 'Z' && st.threads > 1 {
		return gone, s.refreshByThread(p)
	}
	return gone, nil
}

// refreshByThread reads the memory of a process whose first thread has ended through one of
// its other threads, which still have it.
func (s *Sampler) refreshByThread(p *process) error {
	if st, err := statAt(s.procFD, p.mem+"/stat", s.text); err == nil && st.rss > 0 {
		p.size, p.rss = st.size, st.rss
		return nil
	}
	dir, err := unix.Openat(s.procFD, p.name+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unlessGone(err)
	}
	defer unix.Close(dir)
	return unlessGone(s.entries(dir, 0, func(name []byte, _ int64) bool {
		if _, ok := parsePID(name); !ok {
			return true
		}
		st, err := statAt(dir, string(name)+"/stat", s.text)
		if err != nil || st.rss == 0 {
			return true
		}
		p.mem, p.size, p.rss = string(name), st.size, st.rss
		return false
	}))
}
