package engine

import "github.com/tegmen-dev/tegmen/rootfs"

// rootsOwn reports whether only root may write to a directory. Guests are never root of
// the host, so root's files must be shown to them as their own.
func (pl *planner) rootsOwn(src rootfs.Source) bool {
	return pl.host.Become && pl.hasNamespaces() && src.UID == 0 && src.Mode&0o002 == 0
}

func (pl *planner) tryIDMap(path string) error {
	if pl.host.TryIDMap == nil {
		return nil
	}
	return pl.host.TryIDMap(path)
}
