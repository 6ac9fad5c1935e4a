package agent

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// filledScript prints the indexes, from 0, of those of its arguments, directories, that
// are not empty. It only lists them: the entries may be inaccessible.
const filledScript = `n=0
for dir; do
	for at in "$dir"/* "$dir"/.[!.]* "$dir"/..?*; do
		case $at in
		"$dir/*" | "$dir/.[!.]*" | "$dir/..?*") ;;
		*) echo "$n"; break ;;
		esac
	done
	n=$((n+1))
done`

// withoutPlaceholders removes the placeholders of protected paths from a directory's
// entries; see engine.Plan.Placeholders. It keeps a placeholder that is no longer empty,
// since somebody uses it.
func (t *Tools) withoutPlaceholders(ctx context.Context, dir string, entries []entry) ([]entry, error) {
	hidden := make(map[string]bool)
	var dirs []string
	for _, e := range entries {
		at := path.Join(dir, e.name)
		switch {
		case !t.placeholders[at] || strings.Contains(e.mode, "w"):
		case e.dir():
			dirs = append(dirs, at)
			hidden[e.name] = true
		case e.size <= int64(len(".\n")): // the most that a placeholder file holds
			hidden[e.name] = true
		}
	}
	if len(dirs) > 0 {
		filled, err := t.work(ctx, nil, 4096, filledScript, dirs...)
		if err != nil {
			return nil, err
		}
		for _, n := range strings.Fields(string(filled)) {
			if i, err := strconv.Atoi(n); err == nil && i >= 0 && i < len(dirs) {
				delete(hidden, path.Base(dirs[i]))
			}
		}
	}
	return slices.DeleteFunc(entries, func(e entry) bool { return hidden[e.name] }), nil
}

// protected replaces the error that a script reports for a placeholder with its meaning:
// the file does not exist, and cannot be created.
func (t *Tools) protected(name string, err, meaning error) error {
	if !path.IsAbs(name) {
		name = path.Join(t.box.Plan().Dir, name)
	}
	if t.placeholders[path.Clean(name)] && (errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrPermission)) {
		return meaning
	}
	return err
}
