package sample

import "strconv"

// descendants leaves those in the listing that descend from the root. All of the
// host's processes are looked at, so that what forks meanwhile is not missed.
func (s *Sampler) descendants() error {
	clear(s.parents)
	for _, pid := range s.pids {
		st, err := statAt(s.procFD, strconv.Itoa(pid)+"/stat", s.text)
		if isGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		s.parents[pid] = st.ppid
	}
	mine := s.pids[:0]
	for _, pid := range s.pids {
		if s.isBelow(pid) {
			mine = append(mine, pid)
		}
	}
	s.pids = mine
	return nil
}

// isBelow tells whether a process descends from the root, or is it. Parents change
// while they are read, so that the way up could be a circle.
func (s *Sampler) isBelow(pid int) bool {
	for range s.parents {
		parent, ok := s.parents[pid]
		if pid == s.root || !ok {
			break
		}
		pid = parent
	}
	return pid == s.root
}
