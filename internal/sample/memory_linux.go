package sample

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

var pageSize = uint64(os.Getpagesize())

// large is from which size of a process on its page tables are asked for, and
// not taken to be full: for each 2 MiB mapped there is a page of 4 KiB at most,
// which is memory too, even where only the page of zeros is mapped.
const large = 8 << 30

// memory fills in what a sandbox has. Three ways, each dearer and closer than the
// one before, and the next only where the limit could be passed:
//
//  1. what is resident in processes, counted in each that has it, and the files;
//  2. what processes had for themselves when that was asked for last, and what
//     they can have got since;
//  3. what they have for themselves, for which the kernel looks at each page.
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

// exact adds up what has been measured.
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

// round is one of asking each process what it has for itself. It goes on over
// several samples where it takes long; what is born meanwhile is in the next one.
type round struct {
	begun uint64 // the pass; 0 when it is over
	took  time.Duration
	left  uint64    // bytes that processes had which ended, and which others may have now
	old   uint64    // of left, before it began
	again time.Time // when the next one is due, even if nothing seems to have changed
}

// measure does a stretch of a round, and says whether it is over.
func (s *Sampler) measure() (done bool, err error) {
	begin, r := time.Now(), &s.round
	if r.begun == 0 {
		*r = round{begun: s.pass, left: r.left, old: r.left}
	}
	for _, p := range s.known {
		if p.measured >= r.begun || p.born > r.begun {
			continue
		}
		if time.Since(begin) > patience {
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

// estimate is what a process has for itself at most: what it had, and what it has
// taken since. Each page that it stopped to share cost it a fault. What a new
// process shares with its parent is counted there.
//
// It is wrong for memory that others write for it (process_vm_writev(2)) and for
// huge pages in a new one; the next round puts that right.
func (s *Sampler) estimate(p *process) uint64 {
	pages := p.rss
	if p.measured > 0 {
		grown := p.faults - min(p.then.faults, p.faults) + p.rss - min(p.then.rss, p.rss)
		return min(pages*pageSize, p.share.anon+p.share.shmem+grown*pageSize)
	}
	// A child seen right after its parent was measured may have been there then.
	if parent := s.known[p.ppid]; parent != nil && parent.measured > 0 && p.born > parent.measured+1 {
		pages = min(pages, p.faults+p.rss-min(parent.rss, p.rss))
	}
	return pages * pageSize
}

// share asks what a process has for itself, with its page tables. Where that is
// refused, it is what is resident.
func (s *Sampler) share(p *process) (sh share, err error) {
	n, err := readAt(s.procFD, p.mem+"/smaps_rollup", s.text)
	if err != nil && !isGone(err) {
		return sh, err
	}
	sh, ok := parseRollup(s.text[:n])
	if !ok {
		sh = share{anon: p.rss * pageSize} // it is ending, or not ours to look at
	}
	tables, err := s.tables(p, large>>6)
	sh.anon += tables
	return sh, err
}

// tables is how many bytes its page tables are, and at most, when it is small.
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

// files is what is in the sandbox's tmpfs, and in memfds that it has open. What of
// it is mapped is resident in processes, too.
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
