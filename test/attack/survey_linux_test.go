package attack_test

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// survey is what can be seen of the host, by name.
type survey map[string]string

// counters are files below /proc/sys that change by themselves.
var counters = []string{
	"fs/aio-nr", "fs/dentry-state", "fs/file-nr", "fs/inode-nr", "fs/inode-state", "fs/quota/",
	"kernel/ns_last_pid", "kernel/pty/nr", "kernel/random/", "kernel/perf_event_max_sample_rate", "kernel/tainted",
	"net/netfilter/nf_conntrack_count", "vm/stat_refresh",
}

// look surveys the machine, this process, the System V IPC of a user, and everything below dirs.
func look(t *testing.T, uid int, dirs ...string) survey {
	t.Helper()
	s := make(survey)
	for _, file := range []string{"/proc/self/mountinfo", "/proc/self/limits", "/proc/self/oom_score_adj",
		"/proc/self/cgroup",
		"/proc/self/coredump_filter", "/proc/modules", "/proc/net/route", "/proc/swaps", "/proc/filesystems"} {
		s[file] = content(file)
	}
	s.self()
	s.sysctls(t)
	s.machine(t)
	s.ipc(uid)
	for _, dir := range append([]string{"/etc", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin", "/dev"},
		dirs...) {
		s.tree(t, dir, !strings.HasPrefix(dir, "/dev") && slices.Contains(dirs, dir))
	}
	return s
}

// content returns the content of a file, or why it cannot be read.
func content(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// self adds the state of this process that a child could share or a process of the same user could change.
func (s survey) self() {
	for _, line := range strings.Split(content("/proc/self/status"), "\n") {
		key, value, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"Umask", "TracerPid", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "SigCgt", "NoNewPrivs",
			"Seccomp", "THP_enabled",
			"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Cpus_allowed"}, key) {
			s["self "+key] = value
		}
	}
	for _, name := range []string{"cwd", "root", "ns/mnt", "ns/net", "ns/pid", "ns/ipc", "ns/uts", "ns/user", "ns/cgroup",
		"ns/time", "fd/0", "fd/1", "fd/2"} {
		to, err := os.Readlink("/proc/self/" + name)
		s["self "+name] = fmt.Sprint(to, err)
	}
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	s["self dumpable"] = fmt.Sprint(dumpable, err)
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())
	s["self nice"] = fmt.Sprint(nice, err)
}

func (s survey) sysctls(t *testing.T) {
	const root = "/proc/sys/"
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // gone, or not for this user
		}
		name := strings.TrimPrefix(path, root)
		if info, err := e.Info(); err != nil || info.Mode()&0o444 == 0 ||
			slices.ContainsFunc(counters, func(c string) bool { return strings.HasPrefix(name, c) }) {
			return nil
		}
		s["sysctl "+name] = content(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s survey) machine(t *testing.T) {
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		addrs, err := l.Addrs()
		s["link "+l.Name] = fmt.Sprint(l.Index, l.MTU, l.HardwareAddr, l.Flags, addrs, err)
	}
	var real, boot unix.Timespec
	for _, c := range []struct {
		id int32
		ts *unix.Timespec
	}{{unix.CLOCK_REALTIME, &real}, {unix.CLOCK_MONOTONIC, &boot}} {
		if err := unix.ClockGettime(c.id, c.ts); err != nil {
			t.Fatal(err)
		}
	}
	// The clock minus the time since boot. A host may correct the clock a little meanwhile.
	s["clock"] = strconv.FormatInt((real.Nano()-boot.Nano())/int64(time.Second), 10)
}

// ipc lists what that user, or this process, has made. IPC of others comes and goes.
func (s survey) ipc(uid int) {
	for _, kind := range []string{"shm", "msg", "sem"} {
		rows := strings.Split(content("/proc/sysvipc/"+kind), "\n")
		names := strings.Fields(rows[0])
		for _, row := range rows[1:] {
			of := make(map[string]string)
			for i, value := range strings.Fields(row) {
				if i < len(names) {
					of[names[i]] = value
				}
			}
			if of["cuid"] == strconv.Itoa(uid) || of["cpid"] == strconv.Itoa(os.Getpid()) {
				s["ipc "+kind+" "+of[names[1]]] = row
			}
		}
	}
}

// tree lists everything below a directory with the fields of stat(2), and with the contents if asked to.
func (s survey) tree(t *testing.T, root string, contents bool) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil {
			return nil // a terminal that came and went
		}
		if strings.HasPrefix(path, "/dev/") {
			// Terminals and shared memory of others come and go, and their times change.
			if e != nil && e.IsDir() && path != "/dev" {
				return filepath.SkipDir
			}
			s["file "+path] = fmt.Sprintf("%o %d %d %x", st.Mode, st.Uid, st.Gid, st.Rdev)
			return nil
		}
		if path == "/dev" {
			return nil
		}
		text := fmt.Sprintf("%o %d %d %d %d %d", st.Mode, st.Uid, st.Gid, st.Ino, st.Size, st.Mtim)
		if contents {
			// Others may make links to the files of the system meanwhile, which changes these fields.
			text += fmt.Sprintf(" %d %d", st.Nlink, st.Ctim)
			if st.Mode&unix.S_IFMT == unix.S_IFREG {
				h := fnv.New64a()
				_, _ = h.Write([]byte(content(path))) // never fails
				text += fmt.Sprintf(" %x", h.Sum64())
			}
		}
		s["file "+path] = text
		if err != nil && e != nil && e.IsDir() {
			return filepath.SkipDir // not for this user
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// changes lists the differences from an earlier survey.
func (s survey) changes(before survey) (list []string) {
	for name, was := range before {
		now, ok := s[name]
		switch {
		case name == "clock":
			a, _ := strconv.Atoi(was)
			b, _ := strconv.Atoi(now)
			if a-b > 3 || b-a > 3 {
				list = append(list, fmt.Sprintf("the clock jumped by %d s", b-a))
			}
		case !ok:
			list = append(list, name+": gone, was "+strings.TrimSpace(was))
		case now != was:
			list = append(list, fmt.Sprintf("%s: %s, was %s", name, lines(now, was), lines(was, now)))
		}
	}
	for name, now := range s {
		if _, ok := before[name]; !ok {
			list = append(list, name+": new, "+strings.TrimSpace(now))
		}
	}
	slices.Sort(list)
	return list
}

// lines returns the lines of a text that another lacks.
func lines(text, other string) string {
	there := strings.Split(other, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"),
		func(l string) bool { return slices.Contains(there, l) }), "; ")
}

// guests lists processes of the host that may be in a sandbox: those of a user in a pid namespace below this one, and
// the children of this process.
func guests(uid int) (list []string) {
	stats, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return nil
	}
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // ended since
		}
		field := make(map[string][]string)
		for _, line := range strings.Split(string(b), "\n") {
			key, value, _ := strings.Cut(line, ":")
			field[key] = strings.Fields(value)
		}
		if len(field["Uid"]) == 0 || len(field["PPid"]) == 0 {
			continue
		}
		mine := field["PPid"][0] == strconv.Itoa(os.Getpid())
		if mine || field["Uid"][0] == strconv.Itoa(uid) && len(field["NSpid"]) > 1 {
			list = append(list, filepath.Base(filepath.Dir(file))+" "+strings.Join(field["Name"], " ")+" "+field["State"][0])
		}
	}
	return list
}

// keys counts the keys that the kernel has for a user. It frees them later.
func keys(uid int) int {
	for _, line := range strings.Split(content("/proc/key-users"), "\n") {
		f := strings.Fields(line) // uid: usage keys/instantiated …
		if len(f) > 2 && f[0] == strconv.Itoa(uid)+":" {
			count, _, _ := strings.Cut(f[2], "/")
			n, _ := strconv.Atoi(count) // the kernel's digits
			return n
		}
	}
	return 0
}

// kernelComplaints counts the lines of the kernel's log that report a defect of the kernel; it is -1 if the log cannot
// be read.
func kernelComplaints() int {
	buf := make([]byte, 1<<20)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, buf)
	if err != nil {
		return -1
	}
	count := 0
	for _, text := range []string{"cut here", "BUG:", "Oops:", "rcu: INFO", "blocked for more than"} {
		count += strings.Count(string(buf[:n]), text)
	}
	return count
}

// TestStress relies on surveys to notice changes.
func TestSurveyNotices(t *testing.T) {
	dir := t.TempDir()
	file, gone := filepath.Join(dir, "file"), filepath.Join(dir, "gone")
	for _, name := range []string{file, gone} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := look(t, os.Getuid(), dir)
	if changes := look(t, os.Getuid(), dir).changes(before); len(changes) > 0 {
		t.Errorf("nothing was done, and it notices %q", changes)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	old := unix.Umask(0o27)
	defer unix.Umask(old)
	for _, err := range []error{
		os.WriteFile(file, []byte("y"), 0o600), os.Chtimes(file, time.Time{},
			info.ModTime()), os.Remove(gone), os.Mkdir(filepath.Join(dir, "new"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	now := look(t, os.Getuid(), dir)
	now["clock"] = "0"
	changes := strings.Join(now.changes(before), "\n")
	for _, want := range []string{"file " + file + ": ", "file " + gone + ": gone", "/new: new", "self Umask",
		"the clock jumped"} {
		if !strings.Contains(changes, want) {
			t.Errorf("%q is not noticed:\n%s", want, changes)
		}
	}
}

// heartbeat measures how long this process was held up at most.
type heartbeat struct {
	stop chan struct{}
	gap  chan time.Duration
}

func beat() heartbeat {
	h := heartbeat{make(chan struct{}), make(chan time.Duration, 1)}
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var most time.Duration
		for last := time.Now(); ; {
			select {
			case <-tick.C:
				now := time.Now()
				most, last = max(most, now.Sub(last)), now
			case <-h.stop:
				h.gap <- most
				return
			}
		}
	}()
	return h
}

func (h heartbeat) end() time.Duration {
	close(h.stop)
	return <-h.gap
}
