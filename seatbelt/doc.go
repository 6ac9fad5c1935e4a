// Package seatbelt turns a description of what a sandbox may do on macOS into a
// profile for Seatbelt, the system's mandatory access control, and into arguments for
// sandbox-exec(1), which starts a program under it. It only generates text, on any
// system, and starts nothing.
//
//	p, err := seatbelt.New(seatbelt.Config{
//		Write: []seatbelt.Path{{Name: "/private/tmp/job", Dir: true}},
//		Keep:  []string{"/private/tmp/job/.git/hooks"},
//	})
//	cmd := exec.Command("/usr/bin/sandbox-exec", append(p.Args(), "/bin/sh", "-c", "make")...)
//
// # How Seatbelt works
//
// Seatbelt (sandbox(7), sandbox_init(3)) is a kernel extension that checks most system
// calls on files, processes, sockets, Mach services and sysctls. A process enters a
// sandbox once and cannot leave it; its children inherit it. The manual calls
// sandbox-exec(1) deprecated, but Apple confines its own daemons by the same mechanism,
// and Bazel, Nix, Chromium and Codex build on it. Apple does not document SBPL, the
// language of profiles, and macOS refuses a whole profile for one unknown word. This
// package therefore uses only words that those four projects or Apple's own profiles
// have used for years. It targets macOS 12 to 26.
//
//   - An operation that no rule matches is denied; the last matching rule wins. Whether
//     a rule for file-write-unlink beats a later one for the family file-write* is
//     undocumented. Denials here name every operation that an earlier rule allows by
//     name, so that both readings give the same result, and the tests evaluate both.
//   - Filters see the real path of a file, after symbolic links: /tmp is /private/tmp.
//     literal matches that path, subpath also everything beneath it. That subpath
//     matches a plain file is common practice but undocumented: denials use both.
//   - A rename is checked as an unlink of the old name and a creation of the new one,
//     each for the path itself and not for its contents. The directories above a kept
//     or hidden path are therefore pinned.
//   - link(2) and clonefile(2) are checked as file-link and file-clone, which belong to
//     no family that is allowed here. So a sandbox cannot create hard links: a link
//     would give a file that is read-only, kept or hidden a second name. Programs that
//     link (git, cargo, uv) fall back to copying or renaming.
//   - A set-user-ID program does not start (forbidden-exec-sugid) unless the profile
//     allows it: ps and sudo fail. The modifier no-sandbox, which starts a program
//     outside the sandbox, is not used.
//   - Most file systems are case-insensitive. The kernel reports the name as stored, so
//     rules apply to existing files however they are spelled. A name in Keep that does
//     not exist yet is denied in all its spellings.
//
// # What it cannot do
//
//   - It does not hide the host's files: paths are those of the host, and denied files
//     remain visible. Access fails with EPERM where a Linux namespace would give ENOENT.
//   - It does not limit memory, processes or time.
//   - It does not nest. Inside a sandbox, sandbox_apply fails with EPERM, and so do
//     sandbox-exec and the programs that use it (swift build, bazel, nix).
//   - The sysctl kern.procargs2 is reported to reveal the arguments and environment of
//     other processes of the same user whatever the profile says. No rule here allows
//     it, but keep secrets out of the environment of processes that run beside a
//     sandbox.
//   - localhost is the host's: a port in Config.Ports reaches whatever listens on it.
//   - Inherited descriptors are not checked again when they are read and written.
//   - Rules are about names. A file that already has a second name, by a hard link, can
//     be reached by the name that no rule keeps or hides.
//   - /usr/bin/git, python3, clang and others are stubs that run Xcode's tools, and
//     bin/python3 of a framework runs the Python.app beside it. Config.Program must then
//     name the real program, and Launcher the stub.
//   - A program that verifies certificates through the system, as Go's do, cannot:
//     trustd would fetch URLs from a certificate on its behalf, from any host.
package seatbelt
