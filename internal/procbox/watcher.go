//go:build darwin || (linux && (amd64 || arm64))

package procbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// watcher is a process beside a sandbox that outlives this one: when this one is
// killed, it kills what the sandbox has, and removes its directory. Where there is
// a profile it is not under it, so no guest can signal it; it is in a session of its
// own, so no terminal does. Without isolation a guest can do to it what it can do
// to this process.
type watcher struct {
	cmd   *exec.Cmd
	to    *os.File
	known map[int]bool // groups it has been told of
	deaf  bool         // it does not read
}

// watcherScript reads "+GROUP" and "-GROUP" until the end of file, and takes
// nothing else for a group: 0 and 1 would be others'.
const watcherScript = `groups=' '
while read -r line; do
	g=${line#?}
	case $g in '' | *[!0-9]* | 0* | 1) continue ;; esac
	case $line in
	+*) groups="$groups$g " ;;
	-*) groups=${groups/ $g / } ;;
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
	args := append(launchShell[1:len(launchShell):len(launchShell)],
		closeOthers(2)+"\n"+watcherScript, "tegmen-watch", dir)
	w := &watcher{cmd: exec.Command(launchShell[0], args...), to: write, known: make(map[int]bool)}
	w.cmd.Stdin, w.cmd.Env = read, []string{"PATH=/usr/bin:/bin"}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: as}
	err = w.cmd.Start()
	if err = errors.Join(err, read.Close()); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return w, nil
}

// tell says what groups there are now.
func (w *watcher) tell(groups map[int]bool) {
	for g := range groups {
		if !w.known[g] {
			w.known[g] = true
			w.say("+%d\n", g)
		}
	}
	for g := range w.known { // the number of one that is no more may become another's
		if !groups[g] {
			delete(w.known, g)
			w.say("-%d\n", g)
		}
	}
}

// say is heard by a watcher that lives and has not been stopped; others are not
// waited for.
func (w *watcher) say(format string, group int) {
	if w.deaf {
		return
	}
	err := w.to.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if err == nil {
		_, err = fmt.Fprintf(w.to, format, group)
	}
	w.deaf = err != nil
}

// told is for a group that its launcher speaks of itself.
func (w *watcher) told(group int) { w.known[group] = true }

// fd is its descriptor for a launcher, which does not change how it is written to.
func (w *watcher) fd() (fd uintptr, err error) {
	conn, err := w.to.SyscallConn()
	if err == nil {
		err = conn.Control(func(n uintptr) { fd = n })
	}
	return fd, err
}

// close ends it before it learns that there is nothing more to hear.
func (w *watcher) close() error {
	_ = w.cmd.Process.Kill() // or it has ended
	_ = w.cmd.Wait()         // killed
	return w.to.Close()
}
