package seccomp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// CheckKeys refuses the JSON of a policy in which an object has a key twice, or one of a
// Policy's keys in another case. encoding/json would take the last of them, and whoever
// reviews the file may have read another: so a rule could be hidden.
func CheckKeys(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	known := make(map[string]string)
	addKeys(known, reflect.TypeFor[Policy]())
	type level struct {
		seen  map[string]bool // nil: a list
		isKey bool            // the next token is a key
	}
	var open []*level
	for {
		token, err := d.Token()
		if err != nil {
			return nil // the end, or a mistake that decoding reports
		}
		var in *level
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		if key, ok := token.(string); ok && in != nil && in.isKey {
			folded := strings.ToLower(key)
			if want, ok := known[folded]; ok && key != want {
				return fmt.Errorf("key %.100q: use %q", key, want)
			}
			if in.seen[folded] {
				return fmt.Errorf("key %.100q: listed twice", key)
			}
			in.seen[folded], in.isKey = true, false
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, &level{seen: make(map[string]bool), isKey: true})
			continue
		case json.Delim('['):
			open = append(open, &level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil
		}
		in = open[len(open)-1]
		in.isKey = in.seen != nil // a value has ended
	}
}

// addKeys adds the JSON keys of a type, by their lower-case forms.
func addKeys(keys map[string]string, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		addKeys(keys, t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			keys[strings.ToLower(key)] = key
			addKeys(keys, t.Field(i).Type)
		}
	}
}
