//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// channel carries events to the host: a virtio port that nothing else writes to, unlike the console, which the kernel
// uses.
const channel = "/dev/vport0p1"

// guest is pid 1 of the machine. If anything fails, pid 1 ends: the kernel panics and the host gets no answer.
func guest() {
	log.SetFlags(0)
	log.SetPrefix("init: ")
	var o orders
	text, err := os.ReadFile("/orders.json")
	must(err)
	must(json.Unmarshal(text, &o))
	loadModules()
	mountRoot(o)
	settle()
	events := json.NewEncoder(openChannel())
	for i, j := range o.Jobs {
		began := time.Now()
		code := do(i, j, func(output string) { must(events.Encode(event{Output: output})) })
		must(events.Encode(event{Ended: true, Code: code, Seconds: time.Since(began).Seconds()}))
	}
	must(events.Encode(event{Done: true}))
	must(unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
}

func loadModules() {
	files, err := filepath.Glob("/modules/*.ko")
	must(err)
	for _, name := range files {
		f, err := os.Open(name)
		must(err)
		if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
			log.Panicf("%s: %v", name, err)
		}
		must(f.Close())
	}
}

// mountRoot makes the host's tree the root, with writes kept in memory, and mounts what a system mounts.
func mountRoot(o orders) {
	const host, upper, root = "/host", "/upper", "/root"
	mount("host", host, "9p", unix.MS_RDONLY, "trans=virtio,version=9p2000.L,msize=1048576,cache=loose")
	mount("tmpfs", upper, "tmpfs", 0, "mode=755")
	must(os.Mkdir(upper+"/up", 0o755))
	must(os.Mkdir(upper+"/work", 0o755))
	mount("overlay", root, "overlay", 0, "lowerdir="+host+",upperdir="+upper+"/up,workdir="+upper+"/work")
	const fixed = unix.MS_NOSUID | unix.MS_NODEV
	mount("proc", root+"/proc", "proc", fixed|unix.MS_NOEXEC, "")
	mount("sysfs", root+"/sys", "sysfs", fixed|unix.MS_NOEXEC, "")
	mount("cgroup2", root+cgroups, "cgroup2", fixed|unix.MS_NOEXEC, "nsdelegate")
	mount("devtmpfs", root+"/dev", "devtmpfs", unix.MS_NOSUID, "")
	mount("devpts", root+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=620,ptmxmode=666")
	mount("tmpfs", root+"/dev/shm", "tmpfs", fixed, "mode=1777")
	mount("tmpfs", root+"/run", "tmpfs", fixed, "mode=755")
	mount("tmpfs", root+"/tmp", "tmpfs", fixed, "mode=1777")

	must(os.Mkdir(root+source, 0o755))
	bind(host+o.Module, root+source)
	for i, j := range o.Jobs {
		must(os.WriteFile(root+program(i), nil, 0o755))
		bind(host+j.Program, root+program(i))
	}
	must(unix.Chdir(root))
	must(unix.Mount(".", "/", "", unix.MS_MOVE, ""))
	must(unix.Chroot("."))
	must(unix.Chdir("/"))
	must(unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, "")) // as systemd has it
}

// settle does the rest that tests may expect of a booted system.
func settle() {
	for link, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		must(os.Symlink(to, "/dev/"+link))
	}
	must(os.MkdirAll(userRuntime, 0o700))
	must(os.Chown(userRuntime, userID, userID))
	must(os.MkdirAll(userHome, 0o700))
	must(os.Chown(userHome, userID, userID))
	must(unix.Sethostname([]byte("vm")))
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1024, Max: 524288}))
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(err)
	lo, err := unix.NewIfreq("lo")
	must(err)
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	must(unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo))
	must(unix.Close(s))
	enable(makeCgroup(cgroups))
	join(makeCgroup(cgroups + "/init.scope"))
}

// openChannel waits for the port, which appears when its driver has started.
func openChannel() *os.File {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		f, err := os.OpenFile(channel, os.O_WRONLY, 0)
		if err == nil {
			return f
		}
		if time.Now().After(deadline) {
			log.Panic(err)
		}
	}
}

const (
	source      = "/run/src" // where the module is
	userID      = 1000
	userHome    = "/home/user"
	userRuntime = "/run/user/1000"
)

func program(i int) string { return "/run/job-" + strconv.Itoa(i) + ".test" }

// do runs one job to its end and clears away whatever it leaves: the next job runs on the same machine.
func do(i int, j job, output func(string)) (code int) {
	r, w, err := os.Pipe()
	must(err)
	cmd := exec.Command(program(i), j.Args...)
	cmd.Dir = filepath.Join(source, j.Dir)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"},
		j.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true}
	scope := place(j.As, cmd)
	cmd.SysProcAttr.CgroupFD = int(scope.Fd())
	if err := cmd.Start(); err != nil {
		output(fmt.Sprintf("start: %v\n", err))
		code = -1
	}
	must(scope.Close())
	must(w.Close())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for buf := make([]byte, 32<<10); ; {
			n, err := r.Read(buf)
			if n > 0 {
				output(string(bytes.ToValidUTF8(buf[:n], []byte("?"))))
			}
			if err == io.EOF {
				return
			}
			must(err)
		}
	}()
	if cmd.Process != nil {
		code = reap(cmd.Process.Pid)
	}
	must(unix.Kill(-1, unix.SIGKILL)) // spares this process
	reap(-1)
	<-ended
	must(r.Close())
	clearCgroups()
	return code
}

// reap waits for children, most of them orphans, until that one has ended or, with -1, until there are none. The code
// is a shell's.
func reap(pid int) (code int) {
	for {
		var status unix.WaitStatus
		switch got, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err == unix.ECHILD && pid == -1:
			return 0
		case err != nil:
			log.Panicf("wait4: %v", err)
		case got == pid && status.Signaled():
			return 128 + int(status.Signal())
		case got == pid:
			return status.ExitStatus()
		}
	}
}
