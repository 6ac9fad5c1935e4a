package mountinfo

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	const text = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
40 22 8:2 /@home /with\040space\134and\011tab rw master:3 propagate_from:2 - btrfs /dev/sda2 rw,subvol=/@home
not a mount
41 22 8:2 / /cut - `
	want := []Mount{
		{Point: "/", Root: "/", Type: "ext4", Device: "8:1", Writable: true},
		{Point: "/proc", Root: "/", Type: "proc", Device: "0:21", Writable: true},
		{Point: "/with space\\and\ttab", Root: "/@home", Type: "btrfs", Device: "8:2", Writable: true},
	}
	if got := Parse(text); !slices.Equal(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
}

func TestParseLine(t *testing.T) {
	for _, c := range []struct{ name, text, dev, point, kind string }{
		{"plain", "36 35 0:31 / /tmp rw,nosuid - tmpfs tmpfs rw,size=4096k", "0:31", "/tmp", "tmpfs"},
		{"with further fields", "36 35 0:31 /a /t\\040mp rw shared:1 master:2 - tmpfs a-b rw", "0:31", "/t mp", "tmpfs"},
		{"a mount point named as the mark", "36 35 0:31 / - rw - tmpfs tmpfs rw", "0:31", "-", "tmpfs"},
		{"cut", "36 35 0:31 / /tmp rw -", "", "", ""},
		{"empty", "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Mount
			got := Parse(c.text)
			if len(got) > 0 {
				m = got[0]
			}
			ok := len(got) == 1
			if ok != (c.dev != "") || m.Device != c.dev || m.Point != c.point || m.Type != c.kind || ok && !m.Writable {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := Parse("36 35 0:31 / /tmp ro,nosuid - tmpfs tmpfs rw"); len(got) != 1 || got[0].Writable {
		t.Errorf("read-only: %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("36 35 0:31 /a /t\\040mp rw shared:1 - tmpfs a-b rw")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range Parse(text) {
			if m.Device == "" || m.Root == "" || m.Point == "" || m.Type == "" {
				t.Errorf("%q: %+v", text, m)
			}
		}
	})
}
