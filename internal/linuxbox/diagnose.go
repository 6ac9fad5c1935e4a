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
	add("kernel", box.KernelAtLeast(h.Kernel, firstKernel), h.Kernel+" "+h.Arch,
		"Linux "+firstKernel+" or later is required")
	account := fmt.Sprintf("uid %d: guests run as this user", h.UID)
	if h.Become {
		account = "root: guests run as the owner of their workspace, or as nobody"
	}
	add("account", h.UID != 0 || h.Become || h.Contained, account,
		"give root CAP_SETUID, CAP_SETGID and CAP_SETPCAP, or run as an ordinary user")
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
			"none: sandboxes lack the second wall; Linux 5.13 and later have it if lsm= lists it", "")
	case len(lacks) > 0:
		add("Landlock", true, fmt.Sprintf("version %d; lacks %s", h.Landlock, strings.Join(lacks, ", ")), "")
	default:
		add("Landlock", true, fmt.Sprintf("version %d", h.Landlock), "")
	}
	if h.Landlock >= ns.FirstScope {
		add("without namespaces", true, "possible: --degrade namespaces", "")
	} else {
		add("without namespaces", true, "not possible: needs the Landlock of Linux 6.12", "")
	}
	add("cgroup", true, cgroupDetail(h), "")
	if v := sysctl("vm/memfd_noexec"); v != "" {
		add("executable memfd", v != "2", "vm.memfd_noexec="+v, "sysctl vm.memfd_noexec=1 or 0")
	}
	status, _ := os.ReadFile("/proc/self/status") // without it there is nothing to report
	for line := range strings.Lines(string(status)) {
		if mode, ok := strings.CutPrefix(line, "Seccomp:\t"); ok && strings.TrimSpace(mode) != "0" {
			add("outer seccomp filter", true,
				"present; if the sandbox below cannot start, the filter may refuse clone3, unshare or mount", "")
		}
	}
	return out
}

// cgroupDetail says who enforces limits here, and how to have the kernel do it.
func cgroupDetail(h box.Host) string {
	c := h.Cgroup
	detail := "unavailable: " + c.Reason
	if c.Dir != "" {
		detail = "in " + c.Dir + ": " + strings.Join(c.Controllers, " ")
	}
	var instead, unlimited []string
	for _, l := range []struct {
		controller, limits, by string
	}{
		{"memory", "memory", "a watchdog"}, {"pids", "processes", "RLIMIT_NPROC"},
		{"cpu", "CPUs", ""}, {"cpuset", "CPU sets", ""}, {"io", "I/O", ""},
	} {
		switch {
		case c.Has(l.controller):
		case l.by != "":
			instead = append(instead, l.by+" limits "+l.limits)
		default:
			unlimited = append(unlimited, l.limits)
		}
	}
	if len(unlimited) > 0 {
		instead = append(instead, "nothing limits "+strings.Join(unlimited, ", "))
	}
	if len(instead) == 0 {
		return detail
	}
	detail += "; " + strings.Join(instead, ", ")
	if c.Remedy != "" {
		detail += "; to use the kernel's limits: " + c.Remedy
	}
	return detail
}
