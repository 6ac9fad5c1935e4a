package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/workspace"
)

// jsonOverlay is what the command adds to the JSON of a Result, for a workspace with an
// overlay.
type jsonOverlay struct {
	Changes   []jsonChange `json:"changes"`
	Committed *bool        `json:"committed,omitempty"` // with --commit
}

// jsonChange is a workspace.Change.
type jsonChange struct {
	Path       string          `json:"path,omitempty"`
	PathBase64 []byte          `json:"path_base64,omitempty"` // of a name that is not UTF-8
	Kind       workspace.Kind  `json:"kind"`
	Type       workspace.Type  `json:"type"`
	Size       int64           `json:"size"`
	Mode       string          `json:"mode"`
	Was        *jsonChangeInfo `json:"was,omitempty"`
}

type jsonChangeInfo struct {
	Type workspace.Type `json:"type"`
	Size int64          `json:"size"`
	Mode string         `json:"mode"`
}

// printJSON prints a Result and the command's own fields as one object on a line.
func (o *options) printJSON(w io.Writer, r *engine.Result) error {
	line, err := compactJSON(r)
	if err == nil && o.overlay.listed {
		var more []byte
		more, err = compactJSON(o.overlay.json(o.commit))
		line = append(append(bytes.TrimSuffix(line, []byte("}")), ','), bytes.TrimPrefix(more, []byte("{"))...)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// compactJSON leaves <, > and & as they are, which people read.
func compactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

func (r *overlayResult) json(commit bool) jsonOverlay {
	octal := func(mode uint32) string { return fmt.Sprintf("%04o", mode) }
	j := jsonOverlay{Changes: make([]jsonChange, 0, len(r.changes))}
	for _, c := range r.changes {
		one := jsonChange{Kind: c.Kind, Type: c.Type, Size: c.Size, Mode: octal(c.Mode)}
		if utf8.ValidString(c.Path) {
			one.Path = c.Path
		} else {
			one.PathBase64 = []byte(c.Path)
		}
		if c.Kind == workspace.Modified {
			one.Was = &jsonChangeInfo{c.Was.Type, c.Was.Size, octal(c.Was.Mode)}
		}
		j.Changes = append(j.Changes, one)
	}
	if commit {
		j.Committed = &r.committed
	}
	return j
}
