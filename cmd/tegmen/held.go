package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/holdback"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// heldShown is how many paths a run prints of each protected name.
const heldShown = 3

// reportHeld says what was made at protected paths: one line for each of them.
func reportHeld(held []engine.Held) {
	var order []string
	lines := make(map[string][]engine.Held)
	for _, h := range held {
		key := string(h.Action) + h.Name
		if lines[key] == nil {
			order = append(order, key)
		}
		lines[key] = append(lines[key], h)
	}
	for _, key := range order {
		list := lines[key]
		first := list[0]
		var names []string
		for _, h := range list[:min(len(list), heldShown)] {
			names = append(names, printable(beneath(h.Path, h.Name)))
		}
		what := strings.Join(names, ", ")
		if more := len(list) - len(names); more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		switch first.Action {
		case engine.HeldStays:
			fmt.Fprintf(os.Stderr, "tegmen: made: %s, %s\n", what, first.Why)
			continue
		case engine.HeldRefused:
			fmt.Fprintf(os.Stderr, "tegmen: kept: %s, %s; --allow-write %s lets it be changed\n", what, first.Why, first.Name)
			continue
		}
		fmt.Fprintf(os.Stderr, "tegmen: held back: %s, %s; --allow-write %s keeps it, "+
			"tegmen held DIR lists, restores or drops it\n", what, first.Why, first.Name)
	}
}

// printable is a name that a guest has chosen, on one line and without what a terminal
// would obey.
func printable(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return name
	}
	return strconv.Quote(name)
}

// beneath is a path from where a protected name begins in it.
func beneath(path, name string) string {
	first, _, _ := strings.Cut(name, "/")
	if i := strings.LastIndex(path, "/"+first); i >= 0 {
		return path[i+1:]
	}
	return path
}

// heldOptions are the flags of tegmen held.
type heldOptions struct{ restore, drop bool }

func heldMain(args []string) (int, error) {
	var o heldOptions
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		switch args[0] {
		case "--restore":
			o.restore = true
		case "--drop":
			o.drop = true
		case "-h", "--help":
			fmt.Println("  --restore\n        move it back to where it was made: all of it, or these paths of the workspace\n" +
				"  --drop\n        remove it for ever: all of it, or these paths of the workspace")
			return 0, errHelp
		default:
			return 0, fmt.Errorf("held: unknown flag %s: use --restore or --drop", args[0])
		}
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	switch {
	case o.restore && o.drop:
		return 0, errors.New("held: use --restore or --drop, not both")
	case (o.restore || o.drop) && len(args) == 0:
		return 0, errors.New("held: name the workspace: tegmen held --restore DIR [PATH...]")
	}
	return o.apply(args)
}

// apply does what the flags say with what was held back of a workspace.
func (o heldOptions) apply(args []string) (int, error) {
	workspace := ""
	if len(args) > 0 {
		dir, err := hostDir(args[0])
		if err == nil {
			workspace, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return 0, err
		}
		args = args[1:]
	}
	store, err := heldStore(workspace)
	if err != nil {
		return 0, err
	}
	items, err := store.List(workspace)
	if err != nil {
		return 0, err
	}
	wanted, err := choose(items, args)
	if err != nil {
		return 0, err
	}
	for _, it := range wanted {
		switch {
		case o.restore:
			err = errors.Join(err, store.Restore(it))
		case o.drop:
			err = errors.Join(err, store.Drop(it))
		case workspace == "":
			fmt.Printf("%s\t%s\n", it.At.Local().Format("2006-01-02 15:04:05"), printable(filepath.Join(it.Workspace, it.Path)))
		default:
			fmt.Printf("%s\t%s, %s\n", it.At.Local().Format("2006-01-02 15:04:05"), printable(it.Path), it.Why)
		}
	}
	return 0, err
}

// choose is those items that lie at or beneath one of the paths; all without any.
func choose(items []holdback.Item, paths []string) (wanted []holdback.Item, err error) {
	if len(paths) == 0 {
		return items, nil
	}
	for _, p := range paths {
		found := false
		for _, it := range items {
			if rootfs.Within(filepath.Clean(p), it.Path) {
				wanted, found = append(wanted, it), true
			}
		}
		if !found {
			return nil, fmt.Errorf("held: nothing was held back at %s", p)
		}
	}
	return wanted, nil
}

// heldStore is where sandboxes of this user put what they hold back of a workspace.
func heldStore(workspace string) (*holdback.Store, error) {
	host, err := engine.ProbeHost()
	if err != nil {
		return nil, err
	}
	dir := host.HeldDir
	if workspace != "" {
		if dir, err = holdback.Dir(dir, workspace); err != nil {
			return nil, err
		}
	}
	return holdback.Open(dir), nil
}
