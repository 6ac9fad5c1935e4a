// Package seccomp decides which system calls a guest may make. A Policy is data, in
// the format of docker run --security-opt seccomp=FILE. A Filter is the program of
// classic BPF that the kernel runs at each call.
//
// The built-in profiles are embedded in compiled form (go generate), so the default
// build needs no C library. Compile, for user-supplied policies, needs a build with
// cgo and the tag libseccomp. It lowers libseccomp's linear program to an equivalent
// balanced tree of ranges: loading a filter takes time in proportion to its length,
// and every command loads one.
//
// The package installs nothing and needs no privileges. Everything but Compile works
// on every system. Linux has filters since 3.5 and the actions used here since 4.14;
// Notify needs 5.0.
//
//	f, err := seccomp.Builtin("default", "amd64")
//	action := f.Decide(seccomp.Call{Arch: seccomp.AuditArch("amd64"), Nr: 101})
package seccomp

//go:generate go run -tags libseccomp ./generate
