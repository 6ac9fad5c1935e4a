package sample

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// tick is the unit of times in /proc: USER_HZ is 100 on all architectures that
// this is for.
const tick = 10 * time.Millisecond

// process is what is known of one.
type process struct {
	pid int
	stat
	name string // its directory in /proc
	mem  string // the same, or that of a thread which still has its memory
	pool uint64 // ticks counted of children that are gone
	born uint64 // the pass that it was seen in first
	seen uint64 // and last

	measured uint64 // the pass in which it was asked for its share; 0: never
	share    share
	then     stat // what was known of it then
}

func newProcess(pid int) *process {
	name := strconv.Itoa(pid)
	return &process{pid: pid, name: name, mem: name}
}

// used is what a process and its former children have used, in ticks. What it
// waited for is in kids, whether or not it was ever seen running; what was seen
// running is in pool, whether or not it was waited for. Most is in both.
func (p *process) used() uint64 { return p.own + max(p.kids, p.pool) }

// retire moves what was counted for processes that are gone to their parents,
// whose kids have it already or will have it when they wait. Children come
// first, so that it is passed on where both are gone.
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
		if s.known[p.pid] == p { // and not another with the same pid
			delete(s.known, p.pid)
		}
	}
}

// cpu adds up.
func (s *Sampler) cpu() time.Duration {
	sum := s.ended
	for _, p := range s.known {
		sum += p.used()
	}
	s.most = max(s.most, sum)
	return time.Duration(s.most) * tick
}
