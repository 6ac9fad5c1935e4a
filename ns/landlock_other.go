//go:build !linux

package ns

// LandlockABI asks the kernel for its version of Landlock; 0 means that it has
// none.
func LandlockABI() int { return 0 }
