//go:build !linux

package ns

// LandlockABI asks the kernel for its version of Landlock. It returns 0: only Linux
// has it.
func LandlockABI() int { return 0 }
