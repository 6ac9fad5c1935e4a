package engine

import (
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/rootfs"
)

// privateDir stands in a Plan for the private directory of a sandbox without
// namespaces, which is made when the sandbox starts.
const privateDir = "/(private)"

// privatePaths are the parts of a Plan that lie in the private directory.
type privatePaths struct {
	at  string // the directory: privateDir, or that of one sandbox
	dir bool   // Plan.Dir does
	env []int  // these of Plan.Env have a value that does
}

// decidePrivate moves what would be mounts of the sandbox's own to its private
// directory.
func (pl *planner) decidePrivate() {
	p := pl.plan
	p.private.at = privateDir
	if pl.spec.FS.Workspace == "" {
		p.Dir, p.private.dir = privateDir+rootfs.Workspace, true
	}
	for i, kv := range p.Env {
		if kv == "HOME=/tmp" || kv == "TMPDIR=/tmp" {
			p.Env[i] = strings.Replace(kv, "/tmp", privateDir+"/tmp", 1)
			p.private.env = append(p.private.env, i)
		}
	}
	var kept rootfs.Table
	for _, n := range pl.config.Table {
		if n.Kind == rootfs.Bind || n.Kind == rootfs.Device {
			n.Path = n.Source.Path
			if !kept.Has(n.Path) { // what was asked for by way of a link stands there twice
				kept = append(kept, n)
			}
		}
	}
	pl.config.Table, pl.config.Hostname = kept, ""
	// Nothing can be mounted on what is protected; a profile can refuse it.
	pl.refused = pl.config.Placeholders
	pl.config.Placeholders = nil
}

// in is the plan of one sandbox, with its private directory.
func (p *Plan) in(dir string) *Plan {
	if dir == "" {
		return p
	}
	with := *p
	with.private.at = dir
	with.Env = slices.Clone(p.Env)
	if p.private.dir {
		with.Dir = dir + strings.TrimPrefix(p.Dir, privateDir)
	}
	for _, i := range p.private.env {
		name, value, _ := strings.Cut(p.Env[i], "=")
		with.Env[i] = name + "=" + dir + strings.TrimPrefix(value, privateDir)
	}
	return &with
}
