package sample

import "bytes"

// stat is what /proc/PID/stat says of a process that is of use here.
type stat struct {
	state     byte
	ppid      int
	own, kids uint64 // ticks of its threads, and of the children that it waited for
	faults    uint64 // without a wait for a disk
	threads   int
	start     uint64 // ticks since boot
	size, rss uint64 // bytes mapped, pages resident
	stack     uint64 // where it began; a random address
}

// parseStat reads a line of /proc/PID/stat (proc(5)). The name in it is the guest's
// choice and may hold anything; behind the last parenthesis come only numbers.
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
			n = 0 // a time or a count that wrapped, or a field of no use here
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

// number cuts one off the front, with the blanks before it.
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

// amount finds a line such as "Pss_Anon:   12 kB", in bytes. The key begins with
// the end of the line before.
func amount(b []byte, key string) (n uint64, ok bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	n, _, _, ok = number(b[i+len(key):])
	return n << 10, ok
}

// share is what a process has of memory that is mapped, divided by how many have
// it mapped.
type share struct {
	anon, shmem uint64 // bytes; anon with what is swapped out
}

// parseRollup reads /proc/PID/smaps_rollup. A process without memory has an empty one.
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

// pid reads the name of a directory in /proc; most of the others are not numbers.
func parsePID(name []byte) (int, bool) {
	if len(name) == 0 || len(name) > 9 || name[0] == '0' {
		return 0, false
	}
	n, _, rest, ok := number(name)
	return int(n), ok && len(rest) == 0 && name[0] != '-' && name[0] != ' ' && name[0] != '\t'
}

// mount is a line of mountinfo.
type mount struct {
	dev, point, kind []byte
	writable         bool
}

// parseMount reads a line of /proc/PID/mountinfo (proc_pid_mountinfo(5)):
// id, parent, device, root, mount point, options, further fields, "-", type.
func parseMount(line []byte) (m mount, ok bool) {
	fields := bytes.Fields(line)
	end := -1
	for i, f := range fields {
		if i > 5 && len(f) == 1 && f[0] == '-' {
			end = i
			break
		}
	}
	if end < 0 || end+1 >= len(fields) {
		return m, false
	}
	writable := bytes.HasPrefix(fields[5], []byte("rw"))
	return mount{fields[2], fields[4], fields[end+1], writable}, true
}

// eachMapping reads /proc/PID/smaps: mappings with a device, an inode and how many
// bytes of it count for this process.
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
		if first, _, _ := bytes.Cut(line, []byte(" ")); bytes.HasSuffix(first, []byte(":")) || !bytes.Contains(first, []byte("-")) {
			continue
		}
		// addresses, permissions, offset, device, inode, name
		if f := bytes.Fields(line); len(f) >= 5 {
			dev = f[3]
			ino, _, _, _ = number(f[4])
		}
	}
}
