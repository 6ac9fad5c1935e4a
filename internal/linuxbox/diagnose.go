//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"fmt"
	"os"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/ns"
)

// firstKernel is the oldest that everything works on: RLIMIT_NPROC counts by
// user namespace from 5.14 on.
const firstKernel = "5.14"

// Diagnose finds out what this kernel and account allow.
func (m *Machine) Diagnose() []box.Finding {
	var out []box.Finding
	add := func(what string, ok bool, detail, remedy string) {
		if ok {
			remedy = ""
		}
		out = append(out, box.Finding{What: what, OK: ok, Detail: detail, Remedy: remedy})
	}
	h := m.host
	add("kernel", box.KernelAtLeast(h.Kernel, firstKernel), h.Kernel+" "+h.Arch, "the first that works is "+firstKernel)
	account := fmt.Sprintf("uid %d: guests run as this user", h.UID)
	if h.Become {
		account = "root: guests run as the owner of their workspace, or as nobody"
	}
	add("account", h.UID != 0 || h.Become || h.Contained, account,
		"give this root CAP_SETUID, CAP_SETGID and CAP_SETPCAP, or be an ordinary user")
	if v := sysctl("user/max_user_namespaces"); v != "" {
		add("user.max_user_namespaces", v != "0", v, "sysctl user.max_user_namespaces=10000")
	}
	if v := sysctl("kernel/unprivileged_userns_clone"); v != "" && !h.Become {
		add("kernel.unprivileged_userns_clone", v != "0", v, "sysctl kernel.unprivileged_userns_clone=1")
	}
	if v := sysctl("kernel/apparmor_restrict_unprivileged_userns"); v != "" && !h.Become {
		add("AppArmor's restriction of user namespaces", v != "1", "kernel.apparmor_restrict_unprivileged_userns="+v,
			"give tegmen a profile with 'userns,', or set it to 0")
	}
	add("seccomp filters", h.Seccomp, "SECCOMP_RET_KILL_PROCESS", "a kernel from 4.14 on with CONFIG_SECCOMP_FILTER")
	switch lacks := ns.LandlockLacks(h.Landlock); {
	case h.Landlock == 0:
		add("Landlock", true,
			"none: sandboxes do without a second wall; kernels from 5.13 on have it, where lsm= lists it", "")
	case len(lacks) > 0:
		add("Landlock", true, fmt.Sprintf("version %d; lacks %s", h.Landlock, strings.Join(lacks, ", ")), "")
	default:
		add("Landlock", true, fmt.Sprintf("version %d", h.Landlock), "")
	}
	if h.Landlock >= ns.FirstScope {
		add("without namespaces", true, "possible: --degrade namespaces", "")
	} else {
		add("without namespaces", true, "not possible: takes Landlock from Linux 6.12", "")
	}
	add("cgroup", true, cgroupDetail(h), "")
	if v := sysctl("vm/memfd_noexec"); v != "" {
		add("executable memfd", v != "2", "vm.memfd_noexec="+v, "sysctl vm.memfd_noexec=1 or 0")
	}
	status, _ := os.ReadFile("/proc/self/status") // without it there is nothing to report
	for line := range strings.Lines(string(status)) {
		if mode, ok := strings.CutPrefix(line, "Seccomp:\t"); ok && strings.TrimSpace(mode) != "0" {
			add("outer seccomp filter", true,
				"this process runs under one; if the sandbox below cannot start, it may refuse clone3, unshare or mount", "")
		}
	}
	return out
}

// cgroupDetail says who enforces limits here, and what would have the kernel do it.
func cgroupDetail(h box.Host) string {
	c := h.Cgroup
	var without []string
	for _, l := range []struct{ controller, by string }{
		{"memory", "memory by a watchdog"}, {"pids", "processes by RLIMIT_NPROC"}, {"cpu", "CPUs by nothing"},
		{"cpuset", "the set of CPUs by nothing"}, {"io", "I/O by nothing"},
	} {
		if !c.Has(l.controller) {
			without = append(without, l.by)
		}
	}
	detail := "none, as " + c.Reason
	if c.Dir != "" {
		detail = "in " + c.Dir + ": " + strings.Join(c.Controllers, " ")
	}
	if len(without) == 0 {
		return detail
	}
	detail += "; limited are " + strings.Join(without, ", ")
	if c.Remedy != "" {
		detail += "; to have the kernel do it: " + c.Remedy
	}
	return detail
}
