package sample

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// tick is the unit of times in /proc: USER_HZ is 100 on all supported architectures.
const tick = 10 * time.Millisecond

// process is a process as last seen.
type process struct {
	pid int
	stat
	name string // its directory in /proc
	mem  string // the same, or that of a thread which still has its memory
	pool uint64 // ticks counted for children that have ended
	born uint64 // the pass in which it was first seen
	seen uint64 // the pass in which it was last seen

	measured uint64 // the pass in which its share was last read; 0: never
	share    share
	then     stat // its stat at that time
}

func newProcess(pid int) *process {
	name := strconv.Itoa(pid)
	return &process{pid: pid, name: name, mem: name}
}

// used returns the ticks that a process and its former children have used. kids covers
// children that it waited for, whether or not they were ever seen running; pool covers
// children that were seen running, whether or not it waited for them. Most are in both.
func (p *process) used() uint64 { return p.own + max(p.kids, p.pool) }

// retire adds the usage of processes that have ended to their parents, whose kids include
// it once they wait. Children come before parents, so that usage is passed on if both
// have ended.
func (s *Sampler) retire(gone []*process) {
	slices.SortFunc(gone, func(a, b *process) int {
		return cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(b.pid, a.pid))
	})
	for _, p := range gone {
		s.round.left += p.share.anon + p.share.shmem
		if parent := s.known[p.ppid]; parent != nil && parent != p && parent.start <= p.start {
			parent.pool += p.used()
		} else {
			s.ended += p.used()
		}
		if s.known[p.pid] == p { // the pid may have been reused
			delete(s.known, p.pid)
		}
	}
}

// cpu returns the CPU time of all processes. It never decreases.
func (s *Sampler) cpu() time.Duration {
	sum := s.ended
	for _, p := range s.known {
		sum += p.used()
	}
	s.most = max(s.most, sum)
	return time.Duration(s.most) * tick
}
