package sample

import (
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	const tail = " S 17 20 20 0 -1 4194560 73 0 0 0 11 22 33 44 20 0 5 0 101575 2654208 363 18446744073709551615 1 2 9 0"
	want := stat{state: 'S', ppid: 17, own: 33, kids: 77, faults: 73, threads: 5, start: 101575, size: 2654208, rss: 363, stack: 9}
	for _, c := range []struct {
		name, text string
		want       stat
		ok         bool
	}{
		{"plain", "20 (sh)" + tail, want, true},
		{"a name like a line", "20 (a) R 1 1 1 0 0 0 (\n)" + tail, want, true},
		{"a name of parentheses", "20 ())))((()" + tail, want, true},
		{"no name", "20 ()" + tail, want, true},
		{"less than nothing", "20 (sh)" + strings.Replace(tail, "33 44", "-33 -44", 1), stat{'S', 17, 33, 0, 73, 5, 101575, 2654208, 363, 9}, true},
		{"short", "20 (sh) S 17 20", stat{}, false},
		{"cut in the name", "20 (sh", stat{}, false},
		{"ends at the name", "20 (sh)", stat{}, false},
		{"a word for a number", "20 (sh) S x" + tail, stat{}, false},
		{"empty", "", stat{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := parseStat([]byte(c.text))
			if ok != c.ok || ok && got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, ok, c.want)
			}
		})
	}
}

func TestParseRollup(t *testing.T) {
	const text = `55e4b1f6a000-7ffc0dbde000 ---p 00000000 00:00 0                          [rollup]
Rss:                1684 kB
Pss:                 263 kB
Pss_Anon:            100 kB
Pss_File:            143 kB
Pss_Shmem:            20 kB
Swap:                  8 kB
SwapPss:               4 kB
`
	for _, c := range []struct {
		name, text string
		want       share
		ok         bool
	}{
		{"all", text, share{104 << 10, 20 << 10}, true},
		{"without swap", text[:strings.Index(text, "Swap:")], share{100 << 10, 20 << 10}, true},
		{"a kernel that does not tell them apart", strings.ReplaceAll(text, "Pss_", "Pss-"), share{}, false},
		{"of a process without memory", "", share{}, false},
		{"cut", text[:strings.Index(text, " 100")], share{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := parseRollup([]byte(c.text)); ok != c.ok || ok && got != c.want {
				t.Errorf("got %+v, %v, want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestParsePID(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "4194304": 4194304, "": 0, "self": 0, "0": 0, "01": 0, "-1": 0, " 1": 0, "1x": 0, "12345678901234567890": 0, "..": 0} {
		if got, ok := parsePID([]byte(text)); ok != (want != 0) || ok && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, ok, want)
		}
	}
}

func TestEachMapping(t *testing.T) {
	const text = `7f00-7f01 rw-s 00000000 00:31 7                          /dev/shm/a b
Size:                  4 kB
Pss:                   4 kB
Pss_Dirty:             2 kB
VmFlags: rd wr
7f02-7f03 rw-p 00000000 00:00 0
Rss:                   8 kB
Pss:                   8 kB
7f04-7f05 rw-s 00000000 00:01 9                          /memfd:x
Pss:                   0 kB (deleted)
Pss:                   1 kB`
	type mapping struct {
		dev      string
		ino, pss uint64
	}
	var got []mapping
	eachMapping([]byte(text), func(dev []byte, ino, pss uint64) { got = append(got, mapping{string(dev), ino, pss}) })
	want := []mapping{{"00:31", 7, 4096}, {"00:00", 0, 8192}, {"00:01", 9, 0}}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: got %v, want %v", i, got[i], want[i])
		}
	}
}

// Whatever a guest calls its processes and files, and wherever a text is cut, it is
// read to its end.
func FuzzParse(f *testing.F) {
	f.Add([]byte("20 (sh) S 17 20 20 0 -1 4194560 73 0 0 0 11 22 33 44 20 0 5 0 101575 2654208 363 1 2 3 9 0"))
	f.Add([]byte("7f00-7f01 rw-s 00000000 00:31 7 /a\nPss: 4 kB\nPss_Anon: 4 kB\nPss_Shmem: 1 kB\n"))
	f.Add([]byte("36 35 0:31 / /tmp rw,nosuid shared:1 - tmpfs tmpfs rw"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseStat(append([]byte("1 ("), b...)); ok && (s.threads < 0 && s.threads > 1<<40) {
			t.Errorf("%+v", s)
		}
		// A name changes nothing of what stands behind it.
		const rest = ") R 17 20 20 0 -1 4194560 73 0 0 0 11 22 33 44 20 0 5 0 101575 2654208 363 1 2 3 9 0"
		if s, ok := parseStat(append(append([]byte("1 ("), b...), rest...)); !ok || s.own != 33 || s.rss != 363 {
			t.Errorf("%q: %+v", b, s)
		}
		parseRollup(b)
		parsePID(b)
		eachMapping(b, func(_ []byte, _, pss uint64) {
			if pss%1024 != 0 {
				t.Errorf("%q: %d", b, pss)
			}
		})
	})
}
