package sample

import "bytes"

// stat has the fields of /proc/PID/stat that are used here.
type stat struct {
	state     byte
	ppid      int
	own, kids uint64 // ticks used by its threads, and by children that it waited for
	faults    uint64 // minor page faults
	threads   int
	start     uint64 // ticks since boot
	size, rss uint64 // bytes mapped, pages resident
	stack     uint64 // the start address of its stack, which is random
}

// parseStat parses /proc/PID/stat (proc(5)). The guest chooses the name in it, which may
// contain anything; only numbers follow the last parenthesis.
func parseStat(b []byte) (s stat, ok bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 || i+3 >= len(b) {
		return s, false
	}
	s.state = b[i+2]
	b = b[i+3:]
	for field := 4; field <= 28; field++ {
		var n uint64
		var negative bool
		if n, negative, b, ok = number(b); !ok {
			return s, false
		}
		if negative {
			n = 0 // a time or count that wrapped, or an unused field
		}
		switch field {
		case 4:
			s.ppid = int(n)
		case 10:
			s.faults = n
		case 14, 15:
			s.own += n
		case 16, 17:
			s.kids += n
		case 20:
			s.threads = int(n)
		case 22:
			s.start = n
		case 23:
			s.size = n
		case 24:
			s.rss = n
		case 28:
			s.stack = n
		}
	}
	return s, true
}

// number parses a number at the start of b, after blanks.
func number(b []byte) (n uint64, negative bool, rest []byte, ok bool) {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '-' {
		negative, b = true, b[1:]
	}
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	return n, negative, b[i:], i > 0
}

// amount returns the bytes in a line such as "Pss_Anon:   12 kB". The key begins with the
// preceding line break.
func amount(b []byte, key string) (n uint64, ok bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	n, _, _, ok = number(b[i+len(key):])
	return n << 10, ok
}

// share is a process's proportional share of mapped memory: each page is divided by the
// number of processes that map it.
type share struct {
	anon, shmem uint64 // bytes; anon includes swapped memory
}

// parseRollup parses /proc/PID/smaps_rollup, which is empty for a process without memory.
func parseRollup(b []byte) (s share, ok bool) {
	s.anon, ok = amount(b, "\nPss_Anon:")
	if !ok {
		return s, false
	}
	s.shmem, ok = amount(b, "\nPss_Shmem:")
	swap, _ := amount(b, "\nSwapPss:")
	s.anon += swap
	return s, ok
}

// parsePID parses the name of a process's directory in /proc.
func parsePID(name []byte) (int, bool) {
	if len(name) == 0 || len(name) > 9 || name[0] == '0' {
		return 0, false
	}
	n, _, rest, ok := number(name)
	return int(n), ok && len(rest) == 0 && name[0] != '-' && name[0] != ' ' && name[0] != '\t'
}

// eachMapping parses /proc/PID/smaps and yields each mapping's device, inode and
// proportional share in bytes.
func eachMapping(b []byte, each func(dev []byte, ino, pss uint64)) {
	var dev []byte
	var ino uint64
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		b = rest
		if n, ok := amount(line, "Pss:"); ok && line[0] == 'P' {
			if dev != nil {
				each(dev, ino, n)
			}
			dev = nil
			continue
		}
		first, _, _ := bytes.Cut(line, []byte(" "))
		if bytes.HasSuffix(first, []byte(":")) || !bytes.Contains(first, []byte("-")) {
			continue
		}
		// addresses, permissions, offset, device, inode, name
		if f := bytes.Fields(line); len(f) >= 5 {
			dev = f[3]
			ino, _, _, _ = number(f[4])
		}
	}
}
