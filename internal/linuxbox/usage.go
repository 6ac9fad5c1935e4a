//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/sample"
)

// sampled is what the watchdog has seen of a sandbox without a cgroup: of its
// processes, or, without namespaces, of each command's tree.
type sampled struct {
	mu     sync.Mutex
	shared int64     // bytes of System V shared memory
	asked  time.Time // for that
	of     map[*sample.Sampler]sample.Sample
	ended  time.Duration // CPU time of the trees that are gone
	used   box.Usage
	memory bool         // it was above its limit when last looked at
	pids   bool         // the same
	err    error        // why it cannot be sampled; the sandbox is then ended
	looked time.Time    // when kernel was
	kernel atomic.Int64 // sample.OOMKills, when last looked at, and 1; 0: never
	opened bool         // the watchdog's own
	closed bool         // the sandbox has ended
}

// add begins to sample.
func (w *sampled) add(s *sample.Sampler, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.err = err
		return
	case w.closed:
		_ = s.Close() // only read
		return
	}
	if w.of == nil {
		w.of = make(map[*sample.Sampler]sample.Sample)
	}
	w.of[s] = sample.Sample{}
	w.lookAtKernel()
}

// remove ends it.
func (w *sampled) remove(s *sample.Sampler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended += w.of[s].CPU
	delete(w.of, s)
	_ = s.Close() // only read
}

func (w *sampled) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.of {
		_ = s.Close() // only read
	}
	w.of, w.closed = nil, true
}

// turns are taken by watchdogs that look. Reading /proc takes a thread, and Go keeps
// those it once had: five hundred sandboxes whose watchdogs wake up together on a busy
// machine would leave hundreds.
var turns = make(chan struct{}, 4*runtime.NumCPU())

// patienceForTurn is how long a watchdog waits for its turn. A guest can hold up who
// looks at it (mmap_lock), which must not keep others from looking.
const patienceForTurn = sample.Longest

// takeTurn waits for a turn, and returns what ends it.
func takeTurn() (done func()) {
	done = func() { <-turns }
	select {
	case turns <- struct{}{}:
		return done
	default:
	}
	patience := time.NewTimer(patienceForTurn)
	defer patience.Stop()
	select {
	case turns <- struct{}{}:
		return done
	case <-patience.C:
		return func() {}
	}
}

// sharedEvery is the least time between two looks at System V shared memory.
const sharedEvery = 20 * time.Millisecond

// look samples for a watchdog, and says when to look again. With an error the
// sandbox cannot be looked at, and counts as having too much. shared is asked now
// and then.
func (w *sampled) look(limit box.Watch, cpus int, shared func() int64) (box.Look, time.Duration, error) {
	defer takeTurn()()
	s, err := w.sum(limit.Memory, shared)
	if err != nil {
		return box.Look{Memory: box.Unlimited}, sample.Shortest, err
	}
	now := box.Look{Memory: s.Memory, Pids: s.Processes, Idle: s.Processes <= 1}
	if s.Partial {
		now.Memory = 0 // it may be less than was summed up
	}
	w.note(now.Memory > limit.Memory, now.Pids >= limit.Pids)
	return now, sample.Next(s, limits(limit, cpus)), nil
}

// sum adds up what the samplers see.
func (w *sampled) sum(limit int64, shared func() int64) (sum sample.Sample, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.asked) >= sharedEvery {
		w.shared, w.asked = shared(), now
	}
	sum.Memory = w.shared
	sum.CPU = w.ended
	for s := range w.of {
		// Whatever could be more than ever before is looked at closely: only that
		// can be the most that was used.
		now, err := s.Sample(max(min(limit, w.used.Memory), 1))
		if err != nil {
			continue // it has ended, or the host lacks something; the next time is soon
		}
		w.of[s] = now
		sum.Partial = sum.Partial || now.Partial
		sum.Memory += now.Memory
		sum.CPU += now.CPU
		sum.Processes += now.Processes
		sum.Cost += now.Cost
	}
	w.used.By, w.used.CPU = box.ByWatchdog, max(w.used.CPU, sum.CPU)
	if !sum.Partial {
		w.used.Memory = max(w.used.Memory, sum.Memory)
	}
	w.used.Pids = max(w.used.Pids, sum.Processes)
	if time.Since(w.looked) > sample.Longest { // which takes longer than all else
		w.lookAtKernel()
	}
	return sum, w.err
}

func (w *sampled) lookAtKernel() {
	w.kernel.Store(sample.OOMKills() + 1)
	w.looked = time.Now()
}

func (w *sampled) usage() box.Usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used
}

// note counts how often a limit was reached, however often the watchdog looks
// until what is above it has gone.
func (w *sampled) note(memory, pids bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if memory && !w.memory {
		w.used.OOM++
	}
	if pids && !w.pids {
		w.used.ForkFail++
	}
	w.memory, w.pids = memory, pids
}

// limits are those that the time of the next look depends on.
func limits(w box.Watch, cpus int) sample.Limits {
	l := sample.Limits{CPUs: cpus}
	if w.Memory < box.Unlimited {
		l.Memory = w.Memory
	}
	if w.Kill {
		l.Processes = w.Pids
	}
	return l
}

// hostOOM reports whether the kernel has killed processes for want of memory since
// the watchdog last looked.
func (w *sampled) hostOOM() bool {
	last := w.kernel.Load()
	return last > 0 && sample.OOMKills() >= last
}
