package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// useVenv has Python code run in the virtual environment .venv of the workspace, which is
// what its author means: with the system's packages it would run as well, and differently.
// A PATH of the user's decides itself.
func (o *options) useVenv() {
	isPath := func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }
	ws := o.spec.FS.Workspace
	if o.code.Language != "python" || ws == "" || o.spec.FS.Root != "" || slices.ContainsFunc(o.spec.Env, isPath) {
		return
	}
	venv := filepath.Join(ws, ".venv")
	python := pythonOf(venv)
	switch {
	case python == "":
	case o.sees(python) || rootfs.Within("/usr", python):
		bin := filepath.Join(venv, "bin")
		path := "PATH=" + bin + ":" + engine.DefaultPath(runtime.GOOS)
		o.spec.Env = append([]string{path, "VIRTUAL_ENV=" + venv}, o.spec.Env...)
	default:
		prefix := filepath.Dir(filepath.Dir(python))
		fmt.Fprintf(os.Stderr, "tegmen: .venv is not used: the sandbox does not see its Python: -v %s:%s:ro\n",
			prefix, prefix)
	}
}

// pythonOf is the interpreter of a virtual environment, or where the links to it leave the
// environment; "" is none.
func pythonOf(venv string) string {
	at := filepath.Join(venv, "bin", "python3")
	for range 10 { // links can form a circle
		to, err := os.Readlink(at)
		if err != nil { // it is no link, or not there
			if _, err := os.Stat(at); err != nil {
				return ""
			}
			return at
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		if at = filepath.Clean(to); !rootfs.Within(venv, at) {
			if _, err := os.Stat(at); err != nil {
				return ""
			}
			return at
		}
	}
	return ""
}
