// Package ns describes as data what a sandbox's processes see of the machine: their
// user ([IDs]), the files they may open ([Ruleset]) and the resources they may use
// ([Rlimit]). It is portable and confines nothing by itself: the engine turns these
// values into system calls.
//
// Linux has Landlock (landlock(7)) from 5.13 on. [LandlockABI] asks the kernel for
// its version, and [LandlockLacks] lists what that version cannot confine.
package ns
