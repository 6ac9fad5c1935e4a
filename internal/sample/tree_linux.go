package sample

import "strconv"

// descendants reduces the list to the root and its descendants. It reads all processes of
// the host, so that none that fork meanwhile are missed.
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

// isBelow reports whether a process is the root or descends from it. Parents change while
// they are read, so the way up could be a circle.
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
