package engine

import (
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// privateDir stands for the directory of a sandbox without namespaces, which is
// made when it starts.
const privateDir = "/(private)"

// bareDirs moves what would be mounts of the sandbox's own to its directory.
func (p *Plan) bareDirs() {
	if p.Spec.FS.Workspace == "" {
		p.Dir = privateDir + rootfs.Workspace
	}
	for i, kv := range p.Env {
		if kv == "HOME=/tmp" || kv == "TMPDIR=/tmp" {
			p.Env[i] = strings.Replace(kv, "/tmp", privateDir+"/tmp", 1)
		}
	}
	var kept rootfs.Table
	for _, n := range p.table {
		if n.Kind == rootfs.Bind || n.Kind == rootfs.Device {
			n.Path = n.Source.Path
			if !kept.Has(n.Path) { // what was asked for by way of a link stands there twice
				kept = append(kept, n)
			}
		}
	}
	if p.Level == LevelSeatbelt {
		p.keepGhosts()
	}
	p.table, p.ghostDirs, p.guards = kept, nil, false // nothing can be mounted on what is protected
	p.hostname = ""
}

// in is the plan of one sandbox, whose private directory that is.
func (p *Plan) in(dir string) *Plan {
	put := func(s string) string { return strings.ReplaceAll(s, privateDir, dir) }
	with := *p
	with.private = dir
	with.Dir, with.Env = put(p.Dir), make([]string, len(p.Env))
	for i, kv := range p.Env {
		with.Env[i] = put(kv)
	}
	with.landlock = p.landlock.in(put)
	with.seatbelt.Write = slices.Clone(p.seatbelt.Write)
	for i := range with.seatbelt.Write {
		with.seatbelt.Write[i].Name = put(with.seatbelt.Write[i].Name)
	}
	return &with
}
