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

// ListInput is the input of Tools.ListFiles.
type ListInput struct {
	Path string `json:"path,omitempty"` // absolute, or relative to where commands start; "" is that directory
}

// maxEntries bounds how many entries of a directory are listed.
const maxEntries = 1000

// listScript prints the directory's real path and a record for each entry. A name cannot
// contain a slash, so "/\n" ends a record whatever the name contains, and "//\n" ends a
// path. stat gets 200 names at a time, since arguments are limited.
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

// ListFiles lists a directory without its subdirectories' contents: permissions, size in
// bytes, modification time in UTC and name. Directories come first and their names end in
// a slash. Names with unprintable characters are quoted. A list of more than 1000 entries
// is cut and ends in "...[truncated]". Empty placeholders of protected paths are left
// out.
func (t *Tools) ListFiles(ctx context.Context, in ListInput) (string, error) {
	text, err := t.listFiles(ctx, cmp.Or(in.Path, "."))
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
	most := strconv.Itoa(maxEntries + 1 + len(t.placeholders))
	out, err := t.work(ctx, nil, int(engine.MiB), listScript, at, most)
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
	return format(entries) + more, nil
}

// format sorts entries, directories first, and returns a line for each.
func format(entries []entry) string {
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
		shown := e.name // quoted if more than quotes and backslashes must be escaped
		if q := strconv.Quote(shown); q[1:len(q)-1] != strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(shown) {
			shown = q
		}
		if e.dir() {
			shown += "/"
		}
		lines[i] = fmt.Sprintf("%s %*d %s %s", e.mode, width, e.size, e.mtime.UTC().Format("2006-01-02 15:04"), shown)
	}
	return strings.Join(lines, "\n")
}

var errListing = errors.New("the listing from the sandbox makes no sense")

// parseEntries parses the records that listScript prints.
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
