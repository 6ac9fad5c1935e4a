// Package ns describes, as data, what a sandbox's processes see of the machine:
// who they are ([IDs]), what they may open ([Ruleset]) and how much they may use
// ([Rlimit]). It is portable and confines nothing by itself: the engine turns
// these values into system calls.
//
// Landlock (landlock(7)) is in Linux from 5.13 on. [LandlockABI] asks the kernel
// for its version, and [LandlockLacks] lists what that version cannot confine.
package ns
