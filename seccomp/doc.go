// Package seccomp decides which system calls a guest may make. A Policy is
// data, in the format that docker run --security-opt seccomp= takes; a Filter
// is what the kernel runs, a program of classic BPF.
//
// Policies are compiled by libseccomp. The built-in profiles have been compiled
// already (go generate) and are embedded, so that an ordinary build needs no C
// library; Compile, for policies of one's own, needs a build with cgo and the
// tag libseccomp. What libseccomp makes is then lowered to a balanced tree of
// ranges, which decides the same: the kernel takes time to load a filter in
// proportion to its length, and every command loads one.
//
// Nothing is installed here; package ns has the step that does. Everything but
// Compile is portable. Seccomp filters are in Linux from 3.5 on, the actions
// used here from 4.14 on.
//
//	f, err := seccomp.Builtin("default", "amd64")
//	action := f.Decide(seccomp.Call{Arch: seccomp.AuditArch("amd64"), Nr: 101})
package seccomp

//go:generate go run -tags libseccomp ./generate
