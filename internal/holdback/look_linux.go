//go:build amd64 || arm64

package holdback

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/protect"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// watchedDir is a directory in which something can appear.
type watchedDir struct {
	protect.Dir
	file *os.File
	base string // the workspace, or the directory itself if it is outside
	rel  string // in base
}

// Found is something that a guest has made.
type Found struct {
	Path   string         // on the host, absolute
	Name   string         // of the protected path it belongs to: ".vscode"
	Why    string         // continues the path: "which editors execute"
	Action protect.Action // what became of it
}

// finder is what the looks of a Watch have in common.
type finder struct {
	store  *Store
	follow func(fd int, name string, events uint32) // has events at an open file start a look; nil: no more
	found  []Found                                  // since the last Settle
	told   map[string]bool                          // names that have been reported
	times  map[string]int                           // by path, how often it was taken
	storm  chan struct{}                            // closed when that is too often
	tried  bool                                     // a Lock has appeared
	taken  map[string]int                           // by watched name, how many files of it were taken one by one
}

// maxFound bounds what is reported: a guest can make any number.
const maxFound = 1000

func (f *finder) report(found Found) {
	if len(f.found) < maxFound {
		f.found = append(f.found, found)
	}
}

// look is one look at a directory.
type look struct {
	*finder
	d    *watchedDir
	tell bool // report what stays, too
	only bool // move nothing: that something is there is the error
}

// maxTimes is how often a path may be made. Who makes it more often hopes that a
// program of the host sees it in between: with a guest that does nothing else it is
// there half of the time.
const maxTimes = 16

// maxTaken is how many paths may be made in all of what belongs to one name.
const maxTaken = 500

func (f *finder) count(path string, most int) {
	if f.times[path]++; f.times[path] == most {
		select {
		case <-f.storm:
		default:
			close(f.storm)
		}
	}
}

// kindOf is the type of what has a name in a directory; 0 if there is nothing. Where
// that cannot be found out it is unknown, which is no type that may stay: a guest could
// have closed the directory, to open it again later.
func kindOf(dir int, name string) uint32 {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.EACCES {
		if _, ok := widen(dir); ok {
			err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		}
	}
	switch err {
	case nil:
		return st.Mode & unix.S_IFMT
	case unix.ENOENT, unix.ENOTDIR, unix.ENAMETOOLONG:
		return 0
	}
	return unknown
}

const unknown = unix.S_IFMT

// take holds back what has a name, at the path rel from the directory.
func (l *look) take(dir int, name, rel string, n protect.Watched) error {
	if l.only {
		return fmt.Errorf("%s: %w", path.Join(l.d.Source.Path, rel), rootfs.ErrChanged)
	}
	it := Item{Workspace: l.d.base, Path: path.Join(l.d.rel, rel), Why: n.Why, At: time.Now()}
	err := l.store.take(dir, name, it)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the guest has removed it
	}
	if err != nil {
		if now, ok := disarm(dir, name); ok {
			err = fmt.Errorf("%w; it is there as %s", err, now)
		}
	}
	if err == nil {
		l.count(it.Path, maxTimes)
		l.count("all of "+n.As, maxTaken)
		l.report(Found{Path: path.Join(l.d.Source.Path, rel), Name: n.As, Why: n.Why, Action: protect.Moved})
	}
	return err
}

// disarmed ends the names of what could not be moved to the store, whose disk a guest may
// have filled.
const disarmed = ".held"

// disarm gives what is there a name that no program looks for. It replaces nothing: the
// second name is one that no guest can have taken, and is never too long.
func disarm(dir int, name string) (now string, ok bool) {
	widen(dir)
	for _, now := range []string{name + disarmed, name[:min(len(name), 200)] + disarmed + "-" + rand.Text()[:10]} {
		if unix.Renameat2(dir, name, dir, now, unix.RENAME_NOREPLACE) == nil {
			return now, true
		}
	}
	return "", false
}

// refused reports that git has tried to replace what is read-only.
func (l *look) refused(n protect.Watched) {
	if l.tell && l.tried && !l.told[n.As] {
		l.told[n.As] = true
		l.report(Found{Path: path.Join(l.d.Source.Path, strings.TrimSuffix(n.Name, ".lock")), Name: n.As, Why: n.Why,
			Action: protect.Refused})
	}
}

// made reports what stays.
func (l *look) made(n protect.Watched) error {
	if l.only || !l.tell || l.told[n.Name] {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstatat(int(l.d.file.Fd()), n.Name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		l.told[n.Name] = true
		l.report(Found{Path: path.Join(l.d.Source.Path, n.Name), Name: n.As, Why: n.Why, Action: protect.Stays})
	}
	return nil
}

// path holds back a path, of which the parents may have been made as well.
func (l *look) path(n protect.Watched) error {
	dir := int(l.d.file.Fd())
	parts := strings.Split(n.Name, "/")
	for i, part := range parts {
		rel := path.Join(parts[:i+1]...)
		switch kind := kindOf(dir, part); {
		case kind == 0:
			return nil
		case kind == unix.S_IFDIR && i < len(parts)-1:
			d, err := openDir(dir, part)
			if err != nil {
				return err
			}
			defer d.Close()
			l.followNew(d, rel)
			dir = int(d.Fd())
		case kind == unix.S_IFDIR:
			return l.tree(dir, part, rel, n)
		case i == len(parts)-1 || kind == unix.S_IFLNK:
			return l.take(dir, part, rel, n)
		}
	}
	return nil
}

// maxOneByOne is how many files and directories of one name are dealt with one by
// one, before all of it is moved at once.
const maxOneByOne = 64

// tree takes the files in a directory of a watched name. The directories stay: they
// do nothing, and who has made one goes on to make files in it.
func (l *look) tree(dir int, name, rel string, n protect.Watched) error {
	left := maxOneByOne
	if !l.only && l.taken[n.Name] > maxOneByOne {
		left = 0
	}
	all, err := l.files(dir, name, rel, n, &left)
	if err == nil && !all {
		return l.take(dir, name, rel, n)
	}
	return err
}

// files is tree, as long as some are left; otherwise it returns false.
func (l *look) files(dir int, name, rel string, n protect.Watched, left *int) (bool, error) {
	d, err := openDir(dir, name)
	if err != nil {
		return true, err
	}
	defer d.Close()
	l.followNew(d, rel)
	names, _ := d.Readdirnames(*left + 1)
	for _, inner := range names {
		if *left--; *left < 0 {
			return false, nil
		}
		at := path.Join(rel, inner)
		if kindOf(int(d.Fd()), inner) == unix.S_IFDIR {
			if all, err := l.files(int(d.Fd()), inner, at, n, left); !all || err != nil {
				return all, err
			}
			continue
		}
		if err := l.take(int(d.Fd()), inner, at, n); err != nil {
			return true, err
		}
		l.taken[n.Name]++
	}
	return true, nil
}

// followNew has a directory that a guest made start looks from now on.
func (l *look) followNew(d *os.File, rel string) {
	if !l.only && l.follow != nil {
		l.follow(int(d.Fd()), rel, dirEvents)
	}
}

// bare keeps the directory from becoming a repository itself.
func (l *look) bare(n protect.Watched) error {
	dir := int(l.d.file.Fd())
	has := func(name string) bool { return kindOf(dir, name) != 0 }
	for range n.Had {
		if !has("HEAD") || !has("commondir") && (!has("refs") || !has("objects")) {
			return nil
		}
		i := slices.IndexFunc(n.Had, func(name string) bool { return (name == "HEAD" || name == "commondir") && has(name) })
		if i < 0 {
			i = slices.IndexFunc(n.Had, has)
		}
		if i < 0 {
			return nil // all of it is the host's
		}
		n.As = n.Had[i]
		if err := l.take(dir, n.As, n.As, n); err != nil {
			return err
		}
	}
	return nil
}
