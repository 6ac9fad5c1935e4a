package holdback

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Store is a directory for what has been held back, an Item in each directory of
// it. Its methods may be called concurrently, by several processes too.
type Store struct {
	dir string
}

// An Item is one thing that has been held back.
type Item struct {
	ID        string    `json:"-"`         // its directory in the store
	Workspace string    `json:"workspace"` // on the host, absolute
	Path      string    `json:"path"`      // in the workspace, relative to it
	Why       string    `json:"why"`       // continues the path: "which editors execute"
	At        time.Time `json:"at"`        // when it was moved
}

// The names in an Item's directory.
const (
	metaName = "item.json"
	dataName = "data"
)

// DefaultDir is where a user's store is: in XDG_STATE_HOME (the XDG Base Directory
// Specification), or /var/lib for root.
func DefaultDir(home string, root bool) string {
	const name = "tegmen/held"
	state := os.Getenv("XDG_STATE_HOME")
	switch {
	case filepath.IsAbs(state):
		return filepath.Join(state, name)
	case root || home == "":
		return filepath.Join("/var/lib", name)
	}
	return filepath.Join(home, ".local/state", name)
}

// Dir is the directory of a store for a workspace: dir, or another if dir lies in
// the workspace, where guests would reach it.
func Dir(dir, workspace string) (string, error) {
	for _, d := range []string{dir, fmt.Sprintf("/var/tmp/tegmen-held-%d", os.Geteuid())} {
		if rel, err := filepath.Rel(workspace, d); err != nil || !filepath.IsLocal(rel) {
			return d, nil
		}
	}
	return "", fmt.Errorf("hold back what is made in %s: %s is in it: "+
		"set XDG_STATE_HOME to a directory outside", workspace, dir)
}

// Open returns the store in a directory, which is made when something is put into it.
func Open(dir string) *Store { return &Store{dir} }

// make makes the directory of the store, and of an item in it.
func (s *Store) make(it *Item) (string, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	if err := private(s.dir); err != nil {
		return "", err
	}
	it.ID = it.At.UTC().Format("20060102T150405Z-") + rand.Text()[:10]
	at := filepath.Join(s.dir, it.ID)
	if err := os.Mkdir(at, 0o700); err != nil {
		return "", err
	}
	text, err := json.Marshal(it)
	if err == nil {
		err = os.WriteFile(filepath.Join(at, metaName), text, 0o600)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(at))
	}
	return at, nil
}

// List returns what has been held back of a workspace, or of all if that is "", in
// the order in which it was.
func (s *Store) List(workspace string) (items []Item, err error) {
	names, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range names {
		text, rerr := os.ReadFile(filepath.Join(s.dir, entry.Name(), metaName))
		it := Item{ID: entry.Name()}
		if rerr != nil || json.Unmarshal(text, &it) != nil || !filepath.IsLocal(it.Path) {
			continue // it is being made, or removed
		}
		if workspace == "" || it.Workspace == workspace {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(a, b Item) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	return items, err
}

// Restore moves an item back to where it was. Its error is fs.ErrExist if something
// is there now.
func (s *Store) Restore(it Item) error {
	if !filepath.IsLocal(it.Path) {
		return &fs.PathError{Op: "restore", Path: it.Path, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(it.Workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(it.Path), 0o755); err != nil {
		return err
	}
	parent, err := root.OpenRoot(filepath.Dir(it.Path)) // through no link out of the workspace
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := moveInto(filepath.Join(s.dir, it.ID, dataName), parent, filepath.Base(it.Path)); err != nil {
		return &fs.PathError{Op: "restore", Path: filepath.Join(it.Workspace, it.Path), Err: err}
	}
	return s.Drop(it)
}

// Drop removes an item for ever.
func (s *Store) Drop(it Item) error {
	if filepath.Base(it.ID) != it.ID || !filepath.IsLocal(it.ID) || it.ID == "." {
		return &fs.PathError{Op: "drop", Path: it.ID, Err: fs.ErrInvalid}
	}
	return removeAll(filepath.Join(s.dir, it.ID))
}
