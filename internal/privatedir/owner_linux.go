//go:build amd64 || arm64

package privatedir

import "github.com/tegmen-dev/tegmen/internal/launch"

// Do calls f as the guest's user, as far as file systems can tell: what a guest has
// a say in leads f nowhere that the guest cannot go.
func (o Owner) Do(f func() error) error {
	if !o.Become {
		return f()
	}
	return launch.As(launch.Identity{UID: o.IDs.HostUID, GID: o.IDs.HostGID}, f)
}
