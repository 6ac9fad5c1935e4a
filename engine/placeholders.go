package engine

import (
	"path"
	"slices"
)

// Placeholders are the absolute paths inside of what the sandbox puts into its
// workspace so that nobody else can: a protected name that did not exist (.git,
// .npmrc) is an empty directory or a file of at most two bytes while the sandbox
// lives, read-only and by its mode writable to nobody. They hold nothing of the
// workspace's owner, so who shows the workspace to somebody may leave out those
// that are still such. They are sorted; nil is none.
//
// The engine may make fewer of them: none where no guest can make anything.
func (p *Plan) Placeholders() (paths []string) {
	for _, d := range p.ghostDirs {
		for _, dir := range d.at {
			paths = append(paths, path.Join(dir, ghostLock))
		}
		for _, g := range d.ghosts {
			paths = append(paths, g.at...)
		}
	}
	slices.Sort(paths)
	return paths
}
