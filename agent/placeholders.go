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

// filledScript prints which of its arguments, directories, have something in
// them, counted from 0. It only lists: what is in there may not be reachable.
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

// withoutPlaceholders leaves out of a directory's entries what the sandbox has
// put there to protect the workspace; see engine.Plan.Placeholders. What has
// been put into one since is somebody's, so that one stays.
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
		case e.size <= int64(len(".\n")): // all that one may hold
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

// protected makes of what a script found at a placeholder what it means: there
// is no such file, and none can be made.
func (t *Tools) protected(name string, err, meaning error) error {
	if !path.IsAbs(name) {
		name = path.Join(t.box.Plan().Dir, name)
	}
	if t.placeholders[path.Clean(name)] && (errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrPermission)) {
		return meaning
	}
	return err
}
