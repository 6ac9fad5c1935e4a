//go:build darwin || (linux && (amd64 || arm64))

package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// watcher is a process beside a sandbox that outlives this one: when this one is
// killed, it kills what the sandbox has, and removes its directory. It is not
// confined, so no guest can signal it, and in a session of its own, so no
// terminal does.
type watcher struct {
	cmd   *exec.Cmd
	to    *os.File
	known map[int]bool // groups it has been told of
}

// watcherScript reads "+GROUP" and "-GROUP" until the end of file; a "." before
// that says that there is nothing to do.
const watcherScript = `groups=
while read -r line; do
	case $line in
	+*) groups="$groups ${line#+}" ;;
	-*) kept=; for g in $groups; do [ "$g" = "${line#-}" ] || kept="$kept $g"; done; groups=$kept ;;
	.) exit ;;
	esac
done
for g in $groups; do kill -9 "-$g"; done
find "$1" -type d ! -perm -700 -exec chmod 700 {} \;
rm -rf "$1"`

func startWatcher(dir string, as *syscall.Credential) (*watcher, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	args := append(launchShell[1:len(launchShell):len(launchShell)], closeOthers(2)+"\n"+watcherScript, "tegmen-watch", dir)
	w := &watcher{cmd: exec.Command(launchShell[0], args...), to: write, known: make(map[int]bool)}
	w.cmd.Stdin, w.cmd.Env = read, []string{"PATH=/usr/bin:/bin"}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: as}
	err = w.cmd.Start()
	if err = errors.Join(err, read.Close()); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return w, nil
}

// tell says what groups there are now. A watcher that is gone hears nothing, and
// close says so.
func (w *watcher) tell(groups map[int]bool) {
	for g := range groups {
		if !w.known[g] {
			w.known[g] = true
			_, _ = fmt.Fprintf(w.to, "+%d\n", g)
		}
	}
}

// told is for a group that its launcher speaks of itself.
func (w *watcher) told(group int) { w.known[group] = true }

// forget is for groups that are no more: their numbers may become others'.
func (w *watcher) forget(groups map[int]bool) {
	for g := range w.known {
		if !groups[g] {
			delete(w.known, g)
			_, _ = fmt.Fprintf(w.to, "-%d\n", g)
		}
	}
}

func (w *watcher) close() error {
	_, _ = w.to.WriteString(".\n")
	return errors.Join(w.to.Close(), w.cmd.Wait())
}
