package rootfs

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestEtcOfHost(t *testing.T) {
	if !slices.IsSorted(etcPrograms) {
		t.Error("etcPrograms is not sorted")
	}
	names := []string{"ImageMagick-6", "ImageMagick", "java-17-openjdk", "java-", "jav", "R", "R2", "mime.types", "php", "shadow",
		"passwd", "ssh", "pip.conf", "npmrc", "sudoers", "machine-id", "hostname", "docker", "zzz", "", ".", "texmf", "gitconfig"}
	got := Options{List: func(dir string) ([]string, error) { return names, nil }}.etcOfHost()
	got = got[len(etcAlways):]
	if want := "/etc/ImageMagick-6 /etc/java-17-openjdk /etc/R /etc/mime.types /etc/php /etc/texmf /etc/gitconfig"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

// Short files of /etc are copied, and longer ones mounted; a link into /usr is a link.
func TestEtcOfPrograms(t *testing.T) {
	look := func(p string) (Source, error) {
		src := Source{Path: p, Mode: 0o755}
		src.Dir = true
		switch p {
		case "/etc/papersize", "/etc/mime.types", "/etc/gitconfig":
			src.Dir, src.Mode = false, 0o644
			if p == "/etc/gitconfig" {
				src.Mode = 0o600
			}
		case "/etc/os-release":
			src.Path, src.Dir = "/usr/lib/os-release", false
		case "/usr", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/etc/php":
		default:
			return Source{}, &fs.PathError{Op: "find", Path: p, Err: fs.ErrNotExist}
		}
		return src, nil
	}
	table, err := Host(look, Options{
		List: func(string) ([]string, error) {
			return []string{"papersize", "mime.types", "os-release", "gitconfig", "php"}, nil
		},
		Read: func(p string) ([]byte, error) {
			if p == "/etc/mime.types" {
				return make([]byte, page), nil
			}
			if p == "/etc/papersize" {
				return []byte("a4\n"), nil
			}
			return nil, errors.New("not asked for")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, n := range table {
		b.WriteString(n.String() + "\n")
	}
	for _, line := range []string{"file     /etc/papersize (3 bytes)", "bind     /etc/mime.types from /etc/mime.types (ro)",
		"symlink  /etc/os-release -> /usr/lib/os-release", "bind     /etc/gitconfig from /etc/gitconfig (ro)",
		"bind     /etc/php from /etc/php (ro)", "symlink  /var/tmp -> /tmp", "symlink  /run -> /tmp"} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("no %q in\n%s", line, b.String())
		}
	}
}
