//go:build linux

package main

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cgroups is the mount point of version 2, the only one.
const cgroups = "/sys/fs/cgroup"

// place makes the cgroup that a job starts in, as systemd would, and sets the user. The caller closes it.
func place(as string, cmd *exec.Cmd) (scope *os.File) {
	var dir string
	switch as {
	case "root": // as of a service
		enable(makeCgroup(cgroups + "/system.slice"))
		dir = makeCgroup(cgroups + "/system.slice/job.service")
		cmd.Env = append(cmd.Env, "HOME=/root", "USER=root")
	case "user": // as of systemd-run --user --scope -p Delegate=yes
		dir = cgroups
		for _, name := range []string{"user.slice", "user-1000.slice", "user@1000.service", "app.slice", "run.scope"} {
			enable(dir)
			dir = makeCgroup(filepath.Join(dir, name))
			switch name {
			case "user@1000.service":
				own(dir, "", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads")
			case "app.slice", "run.scope": // the user's own systemd makes them
				own(dir, append(files(dir), "")...)
			}
		}
		cmd.Env = append(cmd.Env, "HOME="+userHome, "USER=user", "XDG_RUNTIME_DIR="+userRuntime)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: userID, Gid: userID}
	case "container": // as of docker run --privileged
		enable(makeCgroup(cgroups + "/system.slice"))
		dir = makeCgroup(cgroups + "/system.slice/container.scope")
		cmd.Env = append(cmd.Env, "HOME=/root", "USER=root")
		cmd.SysProcAttr.Unshareflags = unix.CLONE_NEWCGROUP | unix.CLONE_NEWNS
		cmd.Args = append([]string{"container", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/proc/1/exe"
	default:
		log.Panicf("as %q", as)
	}
	scope, err := os.Open(dir)
	must(err)
	return scope
}

// container mounts the tree of its cgroup namespace, and executes the job.
func container() {
	must(unix.Unmount(cgroups, 0))
	mount("cgroup2", cgroups, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	must(unix.Exec(os.Args[1], os.Args[1:], os.Environ()))
}

func makeCgroup(dir string) string {
	must(os.MkdirAll(dir, 0o755))
	return dir
}

// enable gives the children of a cgroup all its controllers.
func enable(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	must(err)
	for _, name := range strings.Fields(string(text)) {
		must(os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0))
	}
}

func join(dir string) {
	must(os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0))
}

// own gives the user some files of a cgroup. Those of a delegated cgroup are few, without its limits: see "Delegation"
// in Documentation/admin-guide/cgroup-v2.rst of Linux.
func own(dir string, names ...string) {
	for _, name := range names {
		must(os.Chown(filepath.Join(dir, name), userID, userID))
	}
}

func files(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	must(err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// clearCgroups removes all cgroups except those of the kernel and of this process. They are empty: all other processes
// have ended.
func clearCgroups() {
	entries, err := os.ReadDir(cgroups)
	must(err)
	for _, e := range entries {
		if e.IsDir() && e.Name() != "init.scope" {
			removeCgroup(filepath.Join(cgroups, e.Name()))
		}
	}
}

func removeCgroup(dir string) {
	entries, err := os.ReadDir(dir)
	must(err)
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	must(unix.Rmdir(dir))
}
