//go:build linux && (amd64 || arm64)

package engine

import (
	"fmt"
	"os"
	"strings"
)

// firstKernel is the oldest that everything works on: RLIMIT_NPROC counts by
// user namespace from 5.14 on.
const firstKernel = "5.14"

func (m *machine) diagnose() []Finding {
	var out []Finding
	add := func(what string, ok bool, detail, remedy string) {
		if ok {
			remedy = ""
		}
		out = append(out, Finding{what, ok, detail, remedy})
	}
	h := m.host
	add("kernel", kernelAtLeast(h.Kernel, firstKernel), h.Kernel+" "+h.Arch, "the first that works is "+firstKernel)
	account := fmt.Sprintf("uid %d: guests run as this user", h.UID)
	if h.Become {
		account = "root: guests run as the owner of their workspace, or as nobody"
	}
	add("account", h.UID != 0 || h.Become || h.Contained, account, "give this root CAP_SETUID, CAP_SETGID and CAP_SETPCAP, or be an ordinary user")
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
	if v := sysctl("vm/memfd_noexec"); v != "" {
		add("executable memfd", v != "2", "vm.memfd_noexec="+v, "sysctl vm.memfd_noexec=1 or 0")
	}
	status, _ := os.ReadFile("/proc/self/status") // without it there is nothing to report
	for line := range strings.Lines(string(status)) {
		if mode, ok := strings.CutPrefix(line, "Seccomp:\t"); ok && strings.TrimSpace(mode) != "0" {
			add("outer seccomp filter", true, "this process runs under one; if the sandbox below cannot start, it may refuse clone3, unshare or mount", "")
		}
	}
	return out
}
