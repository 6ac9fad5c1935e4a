// Package seatbelt turns what a sandbox may do on macOS into a profile of
// Seatbelt, the system's mandatory access control, and into the arguments of
// sandbox-exec(1), which starts a program under it. It is portable: it decides
// and writes text, and starts nothing.
//
//	p, err := seatbelt.New(seatbelt.Config{
//		Write: []seatbelt.Path{{Name: "/private/tmp/job", Dir: true}},
//		Keep:  []string{"/private/tmp/job/.git/hooks"},
//	})
//	cmd := exec.Command("/usr/bin/sandbox-exec", append(p.Args(), "/bin/sh", "-c", "make")...)
//
// # What is relied on
//
// Seatbelt (sandbox(7), sandbox_init(3)) is a kernel extension that is asked
// before most system calls that touch files, processes, sockets, Mach services and
// sysctls. A process enters a sandbox once, its children are born into it, and
// nobody leaves. The page of sandbox-exec(1) calls the command deprecated; Apple
// goes on to confine its own daemons by the same mechanism, and Bazel, Nix,
// Chromium and Codex build on it. The language of profiles, SBPL, is documented by no page of
// Apple's, so only words are used here that those four or Apple's own profiles
// have used for years: one word that a macOS does not know, and it refuses the
// whole profile. The words are meant for macOS 12 to 26.
//
//   - What no rule matches is denied, and of the rules that match the last one
//     counts. Whether a rule for file-write-unlink beats a later one for the family
//     file-write* is nowhere said: denials here name every operation that an
//     allowance before them names, so that both readings come to the same, and the
//     tests evaluate both.
//   - Filters see the real path of a file, after symbolic links: /tmp is
//     /private/tmp. literal is that path, subpath also what is beneath it. That
//     subpath covers a plain file, too, is common practice, and said nowhere:
//     denials have both.
//   - A rename is an unlink of the old name and a creation of the new one, each
//     asked about for the path itself and not for what is beneath. This is why
//     the directories above a kept or hidden path are pinned.
//   - To link(2) and clonefile(2), file-link and file-clone are asked, which are in
//     no family that is allowed here. So there are no new hard links at all: one
//     would give a file that is only read, kept or hidden a name that can be written
//     or read. Programs that link (git, cargo, uv) copy or rename instead.
//   - A program with the set-user-ID bit does not start (forbidden-exec-sugid),
//     unless a profile allows it: ps and sudo fail. The modifier no-sandbox, which
//     lets a program start outside, is not used.
//   - File systems are mostly case-insensitive. The kernel reports the name that a
//     file has, so rules hold for files that exist however they are spelled; a
//     name in Keep that does not exist yet is denied in all its spellings.
//
// # What it cannot do
//
//   - There is no view of the files: names are those of the host, and what is
//     denied is visibly there. It is EPERM, where a namespace of Linux would have
//     ENOENT.
//   - There are no limits: of memory, processes or time.
//   - It does not nest. In a sandbox sandbox_apply fails with EPERM, so sandbox-exec
//     does not run in one, nor does what uses it (swift build, bazel, nix).
//   - The arguments and the environment of other processes of the same user are
//     reported to be readable by the sysctl kern.procargs2 whatever a profile says.
//     No rule here allows it, but secrets do not belong in the environment of a
//     process that runs beside a sandbox.
//   - localhost is the host's. Whatever listens on a port in Config.Ports is
//     reached, not only what was meant.
//   - Descriptors that a process is born with are not asked about again when they
//     are read and written.
//   - Rules are about names. A file that has two already, by a hard link from before,
//     can be reached by the one that no rule keeps or hides.
//   - /usr/bin/git, python3, clang and the like are stubs that run the programs of
//     Xcode's tools, and bin/python3 of a framework runs the Python.app beside it. With
//     Config.Program, that has to name the program behind, and Launcher the stub.
//   - A program that checks certificates through the system (Go's) cannot: trustd
//     would fetch what a certificate says for it, from any host.
package seatbelt
