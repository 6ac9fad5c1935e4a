package seccomp_test

import (
	"fmt"
	"log"

	"github.com/tegmen-dev/tegmen/seccomp"
)

// Ask what a built-in profile does with a system call, and why.
func ExampleProfile_Explain() {
	action, why, refusals := seccomp.Lookup("default").Explain("ioctl")
	fmt.Println(action, "-", why)
	for _, r := range refusals {
		fmt.Println(r.Action, "with some arguments -", r.Why)
	}
	// Output:
	// allow - files: read and write the files that the mounts expose
	// EPERM with some arguments - types or pastes into a terminal (CVE-2017-5226), or loads a line discipline (CVE-2023-6546)
}

// Evaluate a filter without installing it.
func ExampleFilter_Decide() {
	f, err := seccomp.Builtin("strict", "amd64")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"read", "socket", "reboot", "clone3"} {
		nr, _ := seccomp.Number("amd64", name)
		fmt.Println(name, f.Decide(seccomp.Call{Arch: seccomp.AuditArch("amd64"), Nr: nr}))
	}
	// Output:
	// read allow
	// socket EPERM
	// reboot kill
	// clone3 ENOSYS
}

// Check a policy in docker's format.
func ExampleParse() {
	_, err := seccomp.Parse([]byte(`{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"action": "ALLOW"}]}`))
	fmt.Println(err)
	// Output:
	// seccomp policy: syscalls[0]: no names
	// seccomp policy: syscalls[0]: unknown action "ALLOW"
}
