package agent

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/tegmen-dev/tegmen/engine"
)

// readScript checks the type before it opens: opening a FIFO would wait for a writer, and
// opening a device may do anything. If the file is swapped in between,
// Options.FileTimeout ends the wait. A file that seems missing may be inaccessible: stat
// reports which.
const readScript = `[ -d "$1" ] && exit 81
[ -e "$1" ] || { stat -L "$1" >/dev/null && exit 80; exit 1; }
[ -f "$1" ] || exit 82
[ -r "$1" ] || exit 83
exec head -c "$2" "$1"`

// read returns up to max bytes of a file and reports whether it has more.
func (t *Tools) read(ctx context.Context, name string, max int) (content []byte, more bool, err error) {
	at, err := inside(name)
	if err != nil {
		return nil, false, err
	}
	content, err = t.work(ctx, nil, max+1, readScript, at, strconv.Itoa(max+1))
	if len(content) > max {
		return content[:max], true, err
	}
	return content, false, t.protected(name, err, fs.ErrNotExist)
}

// work runs one of our scripts on files and returns its output, at most max bytes.
func (t *Tools) work(ctx context.Context, stdin []byte, max int, script string, args ...string) ([]byte, error) {
	cmd := t.script(ctx, script, args...)
	cmd.Wall = t.o.FileTimeout
	cmd.ExtraEnv = []string{"LC_ALL=C"} // fixes the order of names, and messages for whyFailed
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	out := &limited{max: max}
	cmd.Stdout = out
	res, err := cmd.Run()
	switch {
	case res == nil:
		return nil, failure(err, "")
	case heldBack(res) != nil:
		return nil, heldBack(res)
	case res.Outcome == engine.OutcomeOK && err != nil:
		return nil, fmt.Errorf("more than %d bytes", max)
	case res.Outcome == engine.OutcomeOK:
		return out.buf, nil
	case res.Outcome == engine.OutcomeTimeout:
		return nil, fmt.Errorf("no end of it after %s s: it may be a FIFO or a device", asSeconds(cmd.Wall))
	case res.Outcome == engine.OutcomeCanceled:
		return nil, context.Canceled
	case res.Outcome == engine.OutcomeLost:
		return nil, fmt.Errorf("the sandbox has ended: %w", engine.ErrClosed)
	}
	if err := findings[res.ExitCode]; err != nil {
		return nil, err
	}
	return nil, whyFailed(string(res.Stderr), res.ExitCode)
}

// heldBack is an error if something that was written has been moved aside.
func heldBack(res *engine.Result) error {
	for _, h := range res.Held {
		if h.Action == engine.HeldMoved {
			return because("held back: it is a file "+h.Why, fs.ErrPermission)
		}
	}
	return nil
}

// ReadFileBytes returns the content of a regular file of at most Options.File bytes.
func (t *Tools) ReadFileBytes(ctx context.Context, path string) ([]byte, error) {
	b, err := t.readWhole(ctx, path)
	if err != nil {
		return nil, &engine.Error{Op: "read file", Path: path, Err: err}
	}
	return b, nil
}

func (t *Tools) readWhole(ctx context.Context, path string) ([]byte, error) {
	b, more, err := t.read(ctx, path, int(t.o.File))
	if err == nil && more {
		err = fmt.Errorf("is larger than %v: read a part of it with a command", t.o.File)
	}
	return b, err
}

// writeScript prints "new", or "old" and the old content, and then replaces the file
// atomically by a rename. It resolves a symbolic link inside and keeps the link. It
// refuses a file that is not writable, although a rename would succeed. The name of the
// temporary file cannot be guessed, and set -C (O_EXCL) does not follow it. Only
// execute bits need chmod, which a sandbox without namespaces refuses; there, a file
// that has them is overwritten in place.
const writeScript = `umask 022
file=$1 mode=$2 temp=$3 max=$4 kept=
if [ -L "$file" ]; then
	file=$(readlink -f "$file" && echo .) || exit 85
	file=${file%??}
fi
[ -d "$file" ] && exit 81
case $file in */) exit 81;; esac
dir=${file%/*}
if [ -e "$file" ]; then
	[ -f "$file" ] || exit 82
	[ -w "$file" ] || { (: >>"$file") && exit 83; exit 1; }
	if [ -z "$mode" ]; then
		mode=$(stat -c %a "$file") || exit
		mode=000$mode
		mode=${mode#"${mode%???}"} kept=1
	fi
	echo old
	[ ! -r "$file" ] || head -c "$max" "$file" || exit
else
	[ -d "${dir:-/}" ] || mkdir -p "$dir" || exit
	echo new
fi
temp=$dir/$temp mode=${mode:-644}
(umask "$(printf %o $((0777 & ~0$mode)))"; set -C; cat >"$temp") || { rm -f "$temp"; exit 1; }
case $mode in *[1357]*)
	chmod "$mode" "$temp" || {
		[ "$kept" ] && cat "$temp" >"$file"
		code=$?
		rm -f "$temp"
		exit "$code"
	}
esac
mv -f "$temp" "$file" || { rm -f "$temp"; exit 1; }`

const tempPrefix = ".write-"

// write creates or replaces a file and returns its old content, nil for a new file. The
// caller holds t.edits.
func (t *Tools) write(ctx context.Context, name string, content []byte, mode Mode) (old []byte, err error) {
	if len(content) > int(t.o.File) {
		return nil, fmt.Errorf("content has %d bytes: at most %v can be written", len(content), t.o.File)
	}
	if mode > 0o777 {
		return nil, invalid("mode %#o: permission bits only", uint32(mode))
	}
	at, err := inside(name)
	if err != nil {
		return nil, err
	}
	bits := ""
	if mode != 0 {
		bits = fmt.Sprintf("%04o", uint32(mode))
	}
	max := int(t.o.File)
	out, err := t.work(ctx, content, max+len("old\n"), writeScript,
		at, bits, tempPrefix+unguessable(), strconv.Itoa(max))
	if err != nil {
		return nil, t.protected(name, err, readOnly)
	}
	if before, ok := bytes.CutPrefix(out, []byte("old\n")); ok {
		return before, nil
	}
	return nil, nil
}

// lock excludes other changes of files until unlock is called.
func (t *Tools) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case t.edits <- struct{}{}:
		return func() { <-t.edits }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
