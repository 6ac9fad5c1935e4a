//go:build !unix

package workspace

// DiskUse returns 0: the space that files take is not known here.
func DiskUse(string) int64 { return 0 }
