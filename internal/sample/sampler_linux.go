package sample

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Sampler measures one sandbox. One goroutine at a time uses it.
//
// A sample takes 15 µs and 5 µs a process while what is resident in all of them is
// less than the limit, and little more where what they share has been asked for and
// could not have changed. To ask takes 60 µs a process, and 7 ms for each GiB that
// is resident in it; above a limit, another 6 µs for each process of the host. See
// BenchmarkSample.
type Sampler struct {
	procFD int // a procfs, or -1
	root   int // the pid in there of which all others descend
	tree   bool
	space  uint64 // number of the pid namespace; 0 for a tree
	tmpfs  []tmpfs
	// stack is where this process's begins. Who else has it there is being started
	// still, in the memory of this process, which is not the sandbox's. A guest cannot
	// know it.
	stack uint64

	known   map[int]*process
	parents map[int]int
	pids    []int // what the last listing found
	at      int   // of pids, where the next pass begins
	pass    uint64
	ended   uint64 // ticks of those that are gone
	most    uint64 // ticks
	memfds  held
	round   round
	hidden  hidden
	dirents []byte
	text    []byte
}

// Open returns a Sampler for the sandbox whose pid 1, as first process of a pid
// namespace with a procfs on /proc, has this pid on the host. The caller has to
// keep the pid from being another's (it is the caller's child, and not waited
// for), and calls Open before any guest runs. What it opens keeps the sandbox's
// tmpfs until Close. The mount points onDisk are those of overlays whose upper
// layer takes no memory.
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

// OpenTree returns a Sampler for a process of the host, with all that descend
// from it, which has to adopt those that are orphaned
// (PR_SET_CHILD_SUBREAPER). A sample takes another 4 µs for each process of the
// host. As with Open, the pid must not become another's.
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
	return &Sampler{procFD: -1, root: root, known: make(map[int]*process), parents: make(map[int]int), dirents: make([]byte, 32<<10), text: make([]byte, 4096)}
}

// openOwn finds out what there is to know of this process.
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

// Close gives back what Open has opened. It is safe to call it again.
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

// patience is how long a sample looks at processes; what is left then is looked
// at first the next time.
const patience = 50 * time.Millisecond

// Sample measures. While memory could be above the limit, in bytes, it takes the
// time to see how much it is; a limit of 0 is none. The error is
// os.ErrProcessDone when pid 1 has ended, else an errno that tells of a lack of
// the host's, such as EMFILE; the Sampler can be used on.
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
	var gone []*process
	done := 0
	for ; done < len(s.pids); done++ {
		if done%32 == 31 && time.Since(begin) > patience {
			now.Partial = true
			break
		}
		old, err := s.look(s.pids[(s.at+done)%len(s.pids)])
		if err != nil {
			return now, err
		}
		if old != nil {
			gone = append(gone, old)
		}
	}
	s.at = (s.at + done) % len(s.pids)
	for _, p := range s.known {
		if p.seen != s.pass {
			gone = append(gone, p)
		}
	}
	s.retire(gone)
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

// list finds out which processes there are.
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

// look reads what a process has now. It returns what had its pid before and is
// gone.
func (s *Sampler) look(pid int) (gone *process, err error) {
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
		return gone, s.lookBehind(p)
	}
	return gone, nil
}

// lookBehind finds the memory of a process the first thread of which has ended:
// its other threads have it still, and it is looked at through one of them.
func (s *Sampler) lookBehind(p *process) error {
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

// isGone tells whether an error is that of a process that has ended, or of one
// that may not be looked at.
func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}

func unlessGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

var errFormat = errors.New("not as proc(5) has it")

func statAt(dir int, name string, buf []byte) (s stat, err error) {
	n, err := readAt(dir, name, buf)
	if err != nil {
		return s, err
	}
	s, ok := parseStat(buf[:n])
	if !ok {
		return s, &fs.PathError{Op: "read", Path: "/proc/" + name, Err: errFormat}
	}
	return s, nil
}

// readAt reads a file of /proc at once.
func readAt(dir int, name string, buf []byte) (n int, err error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	n, err = unix.Read(fd, buf)
	_ = unix.Close(fd) // only read
	if err != nil {
		return 0, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return n, nil
}

// entries lists a directory of /proc from an offset on until each says no. The
// name is good until each returns; next is the offset of what follows.
func (s *Sampler) entries(dir int, offset int64, each func(name []byte, next int64) bool) error {
	if _, err := unix.Seek(dir, offset, unix.SEEK_SET); err != nil {
		return err
	}
	for {
		n, err := unix.Getdents(dir, s.dirents)
		if err != nil || n == 0 {
			return err
		}
		for b := s.dirents[:n]; len(b) > 19; {
			size := int(binary.NativeEndian.Uint16(b[16:])) // struct linux_dirent64
			if size < 20 || size > len(b) {
				return errFormat
			}
			name := b[19:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			if !each(name, int64(binary.NativeEndian.Uint64(b[8:]))) {
				return nil
			}
			b = b[size:]
		}
	}
}
