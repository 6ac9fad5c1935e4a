package sample

// Measured returns how many processes had their share read by the last Sample.
func Measured(s *Sampler) (n int) {
	for _, p := range s.known {
		if p.measured == s.pass {
			n++
		}
	}
	return n
}
