//go:build linux && (amd64 || arm64)

package launch

import (
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// joinKeyring gives the calling thread, and so the children it makes, a new session
// keyring in place of the user's, which holds secrets. It stays empty: nobody may
// write to it, so guests that share it cannot pass anything on. One serves all,
// since the kernel allows a user few keys (200) and is slow to count those that are
// gone.
//
// Children of other threads join it by its name, which is "" if there are no
// keyrings or an outer filter refuses them, to guests as well.
func joinKeyring() (name string, err error) {
	var random [16]byte
	if _, err := unix.Getrandom(random[:], 0); err != nil {
		return "", fmt.Errorf("getrandom: %w", err)
	}
	name = "tegmen-" + hex.EncodeToString(random[:])
	ring, err := unix.KeyctlJoinSessionKeyring(name)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return "", nil
	}
	if errors.Is(err, unix.EDQUOT) {
		return "", &UnsupportedError{Feature: "a session keyring for guests", Err: err,
			Remedy: "this user has too many keys: raise sysctl kernel.keys.maxkeys"}
	}
	if err != nil {
		return "", fmt.Errorf("join session keyring: %w", err)
	}
	const view, read, search = 1, 2, 8
	const may = view | read | search
	const possessor, user = may << 24, may << 16
	if err := unix.KeyctlSetperm(ring, possessor|user); err != nil {
		return "", fmt.Errorf("protect session keyring: %w", err)
	}
	return name, nil
}
