package protect

// Decide protects a workspace. The errors are the caller's mistakes.
func Decide(o Options) (Decision, []error) {
	w := &planner{Options: o, seen: make(map[string]bool)}
	ws := &Dir{Source: o.Workspace, At: []string{o.At}}
	if ws.Source.Path != o.At {
		ws.At = append(ws.At, ws.Source.Path)
	}
	w.dirs = append(w.dirs, ws)
	errs := []error{w.git(ws)}
	for _, g := range protected {
		missing := g.missing
		if missing == together && !w.any(ws, g.names) {
			ws.Names = append(ws.Names, g.names...)
			continue
		}
		for _, n := range g.names {
			errs = append(errs, w.protect(ws, entry{name: n, why: g.why, missing: missing}, n))
		}
	}
	d := Decision{Nodes: w.nodes, Notes: w.notes, at: ws.At}
	for _, dir := range w.dirs {
		if len(dir.Placeholders)+len(dir.Watched) > 0 {
			d.Dirs = append(d.Dirs, *dir)
		}
	}
	return d, flatten(errs)
}

// flatten lists the errors that are joined in others.
func flatten(errs []error) (list []error) {
	for _, err := range errs {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			list = append(list, flatten(joined.Unwrap())...)
		} else if err != nil {
			list = append(list, err)
		}
	}
	return list
}
