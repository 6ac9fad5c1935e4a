package engine

import (
	"os"
	"path"
	"strings"
)

// execRequest is what a machine needs to start a command.
type execRequest struct {
	paths, argv, env []string
	dir              string
	files            []*os.File // become 0, 1, 2, …; nil is the null device
	plan             *Plan      // of the sandbox: limits
	terminal         bool       // files[0] becomes the controlling terminal
	marked           bool       // its descendants can be told apart
	texts            string     // a directory of its own, with files to read; may be ""
}

// umask of every command: what it makes is not writable by others.
const umask = 0o022

// searchPath lists what a command's name may stand for, as execvp(3) does it.
func searchPath(name string, env []string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	var paths []string
	for _, kv := range env {
		if dirs, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, dir := range strings.Split(dirs, ":") {
				if dir == "" {
					dir = "."
				}
				paths = append(paths, path.Join(dir, name))
			}
		}
	}
	if len(paths) == 0 {
		paths = []string{"/usr/bin/" + name, "/bin/" + name}
	}
	return paths
}
