// Package mac tests sandboxes as they are on macOS: LevelSeatbelt. It has tests
// only.
//
// On a Mac, as an ordinary user and outside of other sandboxes (not in an
// editor's or an agent's terminal that is confined itself):
//
//	make test-macos
//
// It takes Go, and python3 and node from Homebrew, python.org or the command line
// tools. The last line must be "ok", and with -v no test may say SKIP: what is
// listed in TEGMEN_TEST_REQUIRE fails instead. TestEscapes has one line for each
// act. Each of them is harmless, and most are shown to work outside before they
// have to fail inside: "works outside too" would mean nothing otherwise. Acts that
// depend on how the Mac is set up say "shows nothing on this machine" where they
// do not work outside. An act that works inside is a hole: SECURITY.md says where
// to report it.
//
// What the acts make has a name that begins with "tegmen-test-", and they remove
// it again. If one was interrupted, what may be left is a file of that name in the
// home directory or /tmp, and a domain of that name for defaults(1).
//
// On Linux a stand-in takes the place of sandbox-exec(1). It is as strict with its
// arguments and confines nothing: everything runs there but what needs the
// confinement, which asks for testenv.Seatbelt before it does anything.
package mac
