package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// ListInput is what Tools.ListFiles takes.
type ListInput struct {
	Path string `json:"path,omitempty"` // "" is where commands start
}

// maxEntries bounds what is listed of a directory.
const maxEntries = 1000

// listScript prints where the directory really is, and a record for each entry.
// A name cannot have a slash, so "/\n" ends a record, whatever else is in the
// name, and "//\n" a path. Programs are given 200
// names at a time, as there is a limit to arguments.
const listScript = `[ -e "$1" ] || { stat -L "$1" >/dev/null && exit 80; exit 1; }
[ -d "$1" ] || exit 84
[ -r "$1" ] && [ -x "$1" ] || exit 83
cd "$1" || exit
printf '%s//\n' "$(pwd -P)"
n=$2
set --
for name in ./* ./.[!.]* ./..?*; do
	[ -e "$name" ] || [ -L "$name" ] || continue
	[ "$n" -gt 0 ] || break
	n=$((n-1))
	set -- "$@" "$name"
	[ $# -lt 200 ] || { stat -c '%A %s %Y %n/' "$@" || exit; set --; }
done
[ $# -eq 0 ] || exec stat -c '%A %s %Y %n/' "$@"`

type entry struct {
	mode  string
	size  int64
	mtime time.Time
	name  string
}

func (e entry) dir() bool { return strings.HasPrefix(e.mode, "d") }

// ListFiles lists a directory, not what is below: permissions, size in bytes,
// time of change in UTC and name. Directories come first, their names end in a
// slash. A name with characters that do not print stands in quotes. Of a large
// directory it lists 1000 entries and says "...[truncated]". What the sandbox
// has put there to protect the workspace is left out, as long as it is empty.
func (t *Tools) ListFiles(ctx context.Context, in ListInput) (string, error) {
	text, err := t.listFiles(ctx, orDefault(in.Path, "."))
	if err != nil {
		return "", &engine.Error{Op: "list files", Path: in.Path, Err: err}
	}
	return text, nil
}

func (t *Tools) listFiles(ctx context.Context, name string) (string, error) {
	at, err := inside(name)
	if err != nil {
		return "", err
	}
	out, err := t.work(ctx, nil, int(engine.MiB), listScript, at, strconv.Itoa(maxEntries+1+len(t.placeholders)))
	if err != nil {
		return "", err
	}
	dir, list, ok := strings.Cut(string(out), "//\n")
	if !ok {
		return "", errListing
	}
	entries, err := parseEntries(list)
	if err == nil {
		entries, err = t.withoutPlaceholders(ctx, dir, entries)
	}
	if err != nil || len(entries) == 0 {
		return "(empty directory)", err
	}
	more := ""
	if len(entries) > maxEntries {
		entries, more = entries[:maxEntries], "\n"+truncated
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.dir() != b.dir() {
			if a.dir() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.name, b.name)
	})
	width := 0
	for _, e := range entries {
		width = max(width, len(strconv.FormatInt(e.size, 10)))
	}
	lines := make([]string, len(entries))
	for i, e := range entries {
		shown := e.name // in quotes where more than a quote or a backslash has to be escaped
		if q := strconv.Quote(shown); q[1:len(q)-1] != strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(shown) {
			shown = q
		}
		if e.dir() {
			shown += "/"
		}
		lines[i] = fmt.Sprintf("%s %*d %s %s", e.mode, width, e.size, e.mtime.UTC().Format("2006-01-02 15:04"), shown)
	}
	return strings.Join(lines, "\n") + more, nil
}

var errListing = errors.New("what was listed inside makes no sense")

// parseEntries reads what listScript prints.
func parseEntries(s string) (entries []entry, err error) {
	for s != "" {
		record, rest, ok := strings.Cut(s, " ./")
		fields := strings.Fields(record)
		name, rest, ended := strings.Cut(rest, "/\n")
		if !ok || !ended || len(fields) != 3 || name == "" || strings.Contains(name, "/") {
			return nil, errListing
		}
		size, err1 := strconv.ParseInt(fields[1], 10, 64)
		mtime, err2 := strconv.ParseInt(fields[2], 10, 64)
		if err1 != nil || err2 != nil {
			return nil, errListing
		}
		entries = append(entries, entry{fields[0], size, time.Unix(mtime, 0), name})
		s = rest
	}
	return entries, nil
}
