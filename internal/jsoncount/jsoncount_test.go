package jsoncount

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

func TestCount(t *testing.T) {
	for _, c := range []struct {
		text            string
		values, members int
	}{
		{``, 0, 0},
		{`7`, 0, 0},
		{`"a,b:[{"`, 0, 0},
		{`"a\"b:" `, 0, 0},
		{`"a\\", "b"`, 1, 0},
		{`"a\\\":"`, 0, 0},
		{`[1,[2],{"a":{"b":3}}]`, 6, 2},
		{`{"a:b":"c:d","e":","}`, 2, 2},
		{`"never ends \\\"`, 0, 0},
		{`"\`, 0, 0},
	} {
		if v, m := Count([]byte(c.text)); v != c.values || m != c.members {
			t.Errorf("%s: got %d values, %d members, want %d, %d", c.text, v, m, c.values, c.members)
		}
	}
}

// The number of members is exact: the check for duplicates relies on that.
func FuzzCount(f *testing.F) {
	f.Add([]byte(`{"a\\":{"b":[{"c\"":1},"d:"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		values, members := Count(text)
		if !json.Valid(text) {
			return
		}
		wantValues, wantMembers := tokens(t, text)
		if members != wantMembers || values < wantValues-1 {
			t.Errorf("%q: got %d values, %d members, want %d, %d", text, values, members, wantValues-1, wantMembers)
		}
	})
}

// tokens counts by decoding.
func tokens(t *testing.T, text []byte) (values, members int) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	var objects []bool // of the arrays and objects around a token: whether it is an object
	key := false       // the next token may be a member's name
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return values, members
		}
		if err != nil {
			t.Skip(err) // nested too deeply
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			values++
			objects = append(objects, token == json.Delim('{'))
		case json.Delim('}'), json.Delim(']'):
			objects = objects[:len(objects)-1]
		default:
			if key {
				members++
				key = false
				continue
			}
			values++
		}
		key = len(objects) > 0 && objects[len(objects)-1]
	}
}
