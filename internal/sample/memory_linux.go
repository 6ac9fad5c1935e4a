package sample

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

var pageSize = uint64(os.Getpagesize())

// large is the size of a process from which the size of its page tables is read; below,
// they are taken to be full. There is at most one table of 4 KiB for each 2 MiB mapped,
// and it is memory even if it maps only the zero page.
const large = 8 << 30

// memory fills in a sandbox's memory. It has three ways, each slower and more exact than
// the one before, and uses the next one only if the limit may be exceeded:
//
//  1. the resident memory of processes, counted in each that shares it, and files;
//  2. the proportional share of each process when it was last read, and what the process
//     can have added since;
//  3. the proportional share now, for which the kernel visits each page.
func (s *Sampler) memory(now *Sample, limit int64) error {
	files, err := s.files()
	if err != nil {
		return err
	}
	resident, likely := files, files+s.round.left
	for _, p := range s.known {
		if p.rss == 0 {
			continue
		}
		tables, err := s.tables(p, large)
		if err != nil {
			return err
		}
		resident += p.rss*pageSize + tables
		likely += s.estimate(p) + tables
	}
	now.Memory = int64(min(resident, 1<<62))
	if limit <= 0 || now.Memory <= limit {
		return nil
	}
	now.Memory = int64(min(resident, likely, 1<<62))
	if now.Memory <= limit && time.Now().Before(s.round.again) {
		return nil
	}
	done, err := s.measure()
	if err != nil || !done {
		now.Partial = true
		return err
	}
	return s.exact(now, limit, files)
}

// exact sums up the measured shares.
func (s *Sampler) exact(now *Sample, limit int64, files uint64) error {
	var anon, shmem uint64
	for _, p := range s.known {
		anon += p.share.anon
		shmem += p.share.shmem
	}
	now.Memory = int64(min(anon+shmem+files, 1<<62))
	if now.Memory <= limit {
		return nil
	}
	if shmem > 0 && files > 0 && int64(anon+max(shmem, files)) <= limit {
		both, err := s.mappedFiles()
		if err != nil {
			return err
		}
		now.Memory -= int64(min(both, shmem, files))
	}
	if now.Memory > limit {
		twice, err := s.countedTwice()
		now.Memory -= int64(twice)
		return err
	}
	return nil
}

// round reads the share of each process once. A long round extends over several samples;
// processes born meanwhile belong to the next round.
type round struct {
	begun uint64 // the pass in which it began; 0 when it is over
	took  time.Duration
	left  uint64    // bytes of processes that have ended, which others may have inherited
	old   uint64    // the part of left from before the round
	again time.Time // when the next round is due even if nothing seems to have changed
}

// measure continues a round and reports whether it is over.
func (s *Sampler) measure() (done bool, err error) {
	begin, r := time.Now(), &s.round
	if r.begun == 0 {
		*r = round{begun: s.pass, left: r.left, old: r.left}
	}
	for _, p := range s.known {
		if p.measured >= r.begun || p.born > r.begun {
			continue
		}
		if time.Since(begin) > timeBudget {
			r.took += time.Since(begin)
			return false, nil
		}
		p.share = share{}
		if p.rss > 0 {
			if p.share, err = s.share(p); err != nil {
				return false, err
			}
		}
		p.measured, p.then = s.pass, p.stat
	}
	r.took += time.Since(begin)
	*r = round{left: r.left - r.old, again: time.Now().Add(duty * r.took)}
	return true, nil
}

// estimate returns an upper bound of a process's share: the share last read and what it
// has added since. Each page that it no longer shares has cost it a fault. What a new
// process shares with its parent is counted in the parent.
//
// The bound fails for memory that others write into the process (process_vm_writev(2))
// and for huge pages in a new process; the next round corrects it.
func (s *Sampler) estimate(p *process) uint64 {
	pages := p.rss
	if p.measured > 0 {
		grown := p.faults - min(p.then.faults, p.faults) + p.rss - min(p.then.rss, p.rss)
		return min(pages*pageSize, p.share.anon+p.share.shmem+grown*pageSize)
	}
	// A child first seen right after its parent was measured may have existed then.
	if parent := s.known[p.ppid]; parent != nil && parent.measured > 0 && p.born > parent.measured+1 {
		pages = min(pages, p.faults+p.rss-min(parent.rss, p.rss))
	}
	return pages * pageSize
}

// share reads a process's share, including page tables. If that is refused, it returns the
// resident memory.
func (s *Sampler) share(p *process) (sh share, err error) {
	n, err := readAt(s.procFD, p.mem+"/smaps_rollup", s.text)
	if err != nil && !isGone(err) {
		return sh, err
	}
	sh, ok := parseRollup(s.text[:n])
	if !ok {
		sh = share{anon: p.rss * pageSize} // it is ending, or may not be read
	}
	tables, err := s.tables(p, large>>6)
	sh.anon += tables
	return sh, err
}

// tables returns the size of a process's page tables, or an upper bound if the process is
// small.
func (s *Sampler) tables(p *process, small uint64) (uint64, error) {
	most := p.size / 512
	if p.size <= small {
		return most, nil
	}
	n, err := readAt(s.procFD, p.mem+"/status", s.text)
	if err != nil && !isGone(err) {
		return 0, err
	}
	if exact, ok := amount(s.text[:n], "\nVmPTE:"); ok {
		return exact, nil
	}
	return most, nil
}

// files returns how many bytes the sandbox's tmpfs and open memfds hold. What is mapped of
// them is also resident in processes.
func (s *Sampler) files() (sum uint64, err error) {
	for _, m := range s.tmpfs {
		var st unix.Statfs_t
		if err := unix.Fstatfs(m.fd, &st); err != nil {
			return 0, &fs.PathError{Op: "statfs", Path: m.point, Err: err}
		}
		sum += (st.Blocks - st.Bfree) * uint64(st.Bsize)
	}
	memfds, err := s.memfds.scan(s)
	return sum + memfds, err
}
