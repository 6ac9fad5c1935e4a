//go:build amd64 || arm64

package holdback

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/protect"
)

// repository lets guests make a directory of git, but nothing in it that git would
// execute: hooks, settings that name commands, and what says that they are
// elsewhere.
func (l *look) repository(dir int, rel string, n protect.Watched) error {
	name := path.Base(rel)
	switch kindOf(dir, name) {
	case 0:
		return nil
	case unix.S_IFDIR:
	default: // it leads to a repository somewhere else
		return l.take(dir, name, rel, n)
	}
	if l.only {
		if d, err := openDir(dir, name); err == nil {
			defer d.Close()
			if names, _ := d.Readdirnames(1); len(names) == 0 {
				return nil // a placeholder of another sandbox
			}
		}
		return l.take(dir, name, rel, n)
	}
	d, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer d.Close()
	l.followNew(d, rel)
	return l.gitDir(int(d.Fd()), rel, n, 0)
}

// gitDir is repository for an open directory.
func (l *look) gitDir(dir int, rel string, n protect.Watched, depth int) error {
	for _, name := range []string{"commondir", "config.worktree"} {
		if kindOf(dir, name) != 0 {
			if err := l.take(dir, name, path.Join(rel, name), n); err != nil {
				return err
			}
		}
	}
	harmless := harmlessGitConfig
	if depth > 0 {
		harmless = harmlessModuleConfig
	}
	if err := l.content(dir, "config", rel, n, harmless); err != nil {
		return err
	}
	if err := l.hooks(dir, rel, n); err != nil {
		return err
	}
	if err := l.worktrees(dir, rel, n); err != nil {
		return err
	}
	return l.modules(dir, "modules", rel, n, depth)
}

// content takes a file unless git would write such a one.
func (l *look) content(dir int, name, rel string, n protect.Watched, harmless func(string) bool) error {
	rel = path.Join(rel, name)
	switch kindOf(dir, name) {
	case 0:
		return nil
	case unix.S_IFREG:
	default:
		return l.take(dir, name, rel, n)
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return gone(l.take(dir, name, rel, n)) // closed to its owner
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if l.follow != nil {
		l.follow(fd, rel, fileEvents) // before it is read: it may be written to through another name
	}
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || len(text) > most || !harmless(string(text)) {
		return l.take(dir, name, rel, n)
	}
	return nil
}

// hooks takes all hooks but the examples that git init makes, which are not run.
func (l *look) hooks(dir int, rel string, n protect.Watched) error {
	rel = path.Join(rel, "hooks")
	switch kindOf(dir, "hooks") {
	case 0:
		return nil
	case unix.S_IFDIR:
	default:
		return l.take(dir, "hooks", rel, n)
	}
	d, err := openDir(dir, "hooks")
	if err != nil {
		return err
	}
	defer d.Close()
	l.followNew(d, rel)
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if !strings.HasSuffix(name, ".sample") {
			if err := l.take(int(d.Fd()), name, path.Join(rel, name), n); err != nil {
				return err
			}
		}
	}
	return nil
}

// worktrees looks at the linked worktrees that a guest has added: what is shared must
// be where git puts it, two directories up.
func (l *look) worktrees(dir int, rel string, n protect.Watched) error {
	const name = "worktrees"
	rel = path.Join(rel, name)
	switch kindOf(dir, name) {
	case 0:
		return nil
	case unix.S_IFDIR:
	default:
		return l.take(dir, name, rel, n)
	}
	all, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer all.Close()
	l.followNew(all, rel)
	treat := l.worktree
	names, whole := someNames(all, len(n.Had))
	switch {
	case whole:
	case len(n.Had) == 0:
		return l.take(dir, name, rel, n)
	default: // the host's stay
		treat = l.take
		rest, _ := all.Readdirnames(-1)
		names = append(names, rest...)
	}
	for _, name := range names {
		if slices.Contains(n.Had, name) {
			continue // the host's, of which that is mounted read-only
		}
		if err := gone(treat(int(all.Fd()), name, path.Join(rel, name), n)); err != nil {
			return err
		}
	}
	return nil
}

func (l *look) worktree(dir int, name, rel string, n protect.Watched) error {
	if kindOf(dir, name) != unix.S_IFDIR {
		return l.take(dir, name, rel, n)
	}
	d, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer d.Close()
	l.followNew(d, rel)
	if kindOf(int(d.Fd()), "config.worktree") != 0 {
		if err := l.take(int(d.Fd()), "config.worktree", path.Join(rel, "config.worktree"), n); err != nil {
			return err
		}
	}
	return l.content(int(d.Fd()), "commondir", rel, n, func(text string) bool {
		return text == "" || text == "../..\n" || text == "../.." // git is about to write it
	})
}

// modules looks at the repositories of submodules, which may be in directories of
// directories, as their names are.
func (l *look) modules(dir int, name, rel string, n protect.Watched, depth int) error {
	rel = path.Join(rel, name)
	switch kindOf(dir, name) {
	case 0:
		return nil
	case unix.S_IFDIR:
	default:
		return l.take(dir, name, rel, n)
	}
	if depth == maxDepth {
		return l.take(dir, name, rel, n)
	}
	d, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer d.Close()
	l.followNew(d, rel)
	isGit := kindOf(int(d.Fd()), "HEAD") != 0
	if isGit {
		if err := l.gitDir(int(d.Fd()), rel, n, depth+1); err != nil {
			return err
		}
	}
	names, whole := someNames(d, 0)
	if !whole {
		return l.take(dir, name, rel, n)
	}
	for _, inner := range names {
		if isGit && slices.Contains(gitOwn, inner) {
			continue
		}
		if kindOf(int(d.Fd()), inner) == unix.S_IFDIR {
			if err := l.modules(int(d.Fd()), inner, rel, n, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// gitOwn are the directories in a directory of git that are no submodule's, or have been
// looked at.
var gitOwn = []string{"branches", "hooks", "info", "lfs", "logs", "modules", "objects", "refs", "rr-cache", "worktrees"}

// maxNames is how many linked worktrees, or submodules in one directory, are looked at: a
// guest could otherwise make each look take seconds, in which it makes something else.
const maxNames = 256

// someNames are the names in a directory; whole is false if there are more than maxNames
// besides those that it had.
func someNames(d *os.File, had int) (names []string, whole bool) {
	names, _ = d.Readdirnames(had + maxNames + 1)
	return names, len(names) <= had+maxNames
}
