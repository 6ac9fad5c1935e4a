package agent

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

// What shells and programs say, each in its own way, is told in one.
func TestWhyFailed(t *testing.T) {
	for _, c := range []struct {
		said, want string
		is         error // nil: any
	}{
		{"sh: 25: cannot create ./.vscode/.write-2ieaovf2lqejpa5c: Read-only file system\n", "read-only in this sandbox",
			fs.ErrPermission},
		{"sh: line 25: ./.vscode/.write-2ieaovf2lqejpa5c: Read-only file system", "read-only in this sandbox", syscall.EROFS},
		{"sh: line 24: can't create ./x: Permission denied", "permission denied", fs.ErrPermission},
		{"sh:25: read-only file system: ./x/.write-2ieaovf2lqejpa5c", "read-only in this sandbox", fs.ErrPermission},
		{"sh: 25: cannot create ./x/.write-a: Directory nonexistent", "file does not exist", fs.ErrNotExist},
		{"first\nmv: cannot move './.write-a' to './x': Device or resource busy", "Device or resource busy", nil},
		{"sh: 25: readlink: not found", "readlink: not found", nil},
		{"mkdir: './a: Permission denied': No space left on device", "no space left", syscall.ENOSPC},
		{".write-a", "exit code 3", nil},
		{"", "exit code 3", nil},
	} {
		err := whyFailed(c.said, 3)
		if err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%q: %v, want %s, which is %v", c.said, err, c.want, c.is)
		}
	}
}
