package engine

import (
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// overlaid reports whether the workspace is written to in a layer above it.
func (pl *planner) overlaid() bool { return pl.spec.FS.WorkspaceMode == WorkspaceOverlay }

func checkOverlay(s Spec) (errs []error) {
	f := s.FS
	switch f.Protect {
	case "", ProtectWatch, ProtectStrict, ProtectOff:
		if f.Protect != "" && f.Workspace == "" {
			errs = append(errs, invalidField("fs.protect", string(f.Protect), "without a workspace nothing is protected"))
		}
	default:
		errs = append(errs, invalidField("fs.protect", quoted(f.Protect),
			"neither %s nor %s nor %s", ProtectWatch, ProtectStrict, ProtectOff))
	}
	switch f.WorkspaceMode {
	case "", WorkspaceDirect, WorkspaceOverlay:
	default:
		errs = append(errs, invalidField("fs.workspace_mode", quoted(f.WorkspaceMode),
			"neither %s nor %s", WorkspaceDirect, WorkspaceOverlay))
	}
	switch {
	case f.Workspace == "" && f.WorkspaceMode != "":
		errs = append(errs, invalidField("fs.workspace_mode", string(f.WorkspaceMode), "without a workspace"))
	case f.WorkspaceMode != WorkspaceOverlay && f.Upper != "":
		errs = append(errs, invalidField("fs.upper", f.Upper, "only a workspace of mode %s has one", WorkspaceOverlay))
	case f.Workspace == "" && s.Limits.Workspace != 0:
		errs = append(errs, invalidField(limitPath(LimitWorkspace), "", "without a workspace"))
	case f.Upper != "" && s.Limits.Workspace != 0 && s.Limits.Workspace != UnlimitedBytes:
		errs = append(errs, invalidField(limitPath(LimitWorkspace), "",
			"nothing limits what is written to the upper %s: leave out one of them", f.Upper))
	}
	if f.Upper != "" {
		errs = append(errs, hostPath("fs.upper", f.Upper))
	}
	return errs
}

// overlayNode is the node of the workspace, at its real path.
func (pl *planner) overlayNode(src rootfs.Source) rootfs.Node {
	return rootfs.Node{Path: src.Path, Kind: rootfs.Overlay, Source: src, Mode: src.Mode&0o777 | 0o700,
		Size: tmpfsLimit(pl.limits.Workspace), Inodes: tmpfsLimit(pl.limits.TmpFiles)}
}

// linkWorkspace makes the name by which an overlaid workspace was asked for, if
// that is not the real one: two overlays cannot share an upper. Where the name lies
// in a tree of the host's, it exists already.
func (pl *planner) linkWorkspace(t rootfs.Table) rootfs.Table {
	if !pl.overlaid() || pl.workspace == nil {
		return t
	}
	at := filepath.Clean(pl.spec.FS.Workspace)
	if at != pl.workspace.Path && t.Makes(at) {
		t = t.Add(rootfs.Node{Path: at, Kind: rootfs.Symlink, Data: pl.workspace.Path})
	}
	return t
}

// decideOverlay decides where the layer is, and who limits it.
func (pl *planner) decideOverlay() {
	table := pl.config.Table
	if !pl.overlaid() || pl.workspace == nil || !pl.hasNamespaces() {
		return
	}
	i := slices.IndexFunc(table, func(n rootfs.Node) bool {
		return n.Path == pl.workspace.Path && n.Kind == rootfs.Overlay
	})
	if i < 0 {
		return // what is wrong has been said
	}
	limit := Limit{Name: LimitWorkspace, Value: unlimited}
	if pl.spec.FS.Upper == "" {
		if !box.KernelAtLeast(pl.host.Kernel, "6.6") {
			pl.fail(&UnsupportedError{Feature: "an overlay in memory over the workspace", Since: "6.6",
				Field: "fs.workspace_mode",
				Remedy: "an older tmpfs cannot remember that a directory was removed and made again: " +
					"give it an upper directory on disk"})
			return
		}
		limit.Value, limit.Enforcers = text(pl.limits.Workspace), []Enforcer{{Kind: ByTmpfs}}
	} else {
		src, ok := pl.upper()
		if !ok {
			return
		}
		table[i].Upper, table[i].Size, table[i].Inodes = src, 0, 0
	}
	pl.plan.Limits = append(pl.plan.Limits, limit)
}

// upper is the directory for the layer.
func (pl *planner) upper() (rootfs.Source, bool) {
	upper := pl.spec.FS.Upper
	src, err := pl.source("fs.upper", upper)
	switch {
	case err != nil:
	case !src.Dir:
		err = invalidField("fs.upper", upper, "not a directory")
	case rootfs.Within(pl.workspace.Path, src.Path):
		err = invalidField("fs.upper", upper, "it is in the workspace, and would become a part of it")
	}
	pl.fail(err)
	return src, err == nil
}

// tmpfsLimit is a limit as a tmpfs takes it: 0 is none.
func tmpfsLimit[T Bytes | int | time.Duration](v T) int64 {
	if int64(v) == math.MaxInt64 {
		return 0
	}
	return int64(v)
}
