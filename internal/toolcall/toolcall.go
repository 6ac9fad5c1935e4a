// Package toolcall is what guests in every language share about tools: how a call
// names one, and what its schemas say about arguments and value.
package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Members returns the JSON members of a call's params that name a tool, without
// braces: `"name":"query","namespace":"db"` for "db.query".
func Members(fullName string) string {
	var r struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
	}
	r.Name = fullName
	if namespace, name, found := strings.Cut(fullName, "."); found {
		r.Name, r.Namespace = name, namespace
	}
	b, _ := json.Marshal(r) // strings always marshal
	return string(b[1 : len(b)-1])
}

// Parameter is a property of a tool's arguments.
type Parameter struct {
	Name   string          // as in the schema
	Schema json.RawMessage // of its value
}

// Parameters lists the properties of a JSON Schema in the order in which they are
// written. It returns nil if there are none, or no schema.
func Parameters(schema json.RawMessage) []Parameter {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties)) // a map would lose the order
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var all []Parameter
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return all
		}
		p := Parameter{Name: name.(string)}
		if d.Decode(&p.Schema) != nil {
			return all
		}
		all = append(all, p)
	}
	return all
}

// typeNames is the "type" of a schema: one name or a list.
type typeNames []string

// UnmarshalJSON accepts both forms.
func (t *typeNames) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = make(typeNames, 1)
	return json.Unmarshal(b, &(*t)[0])
}

// IsText reports whether the schema allows only strings and null.
func IsText(schema json.RawMessage) bool {
	var s struct {
		Type typeNames         `json:"type"`
		Enum []json.RawMessage `json:"enum"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	if s.Type == nil {
		return s.Enum != nil && !slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool { return v[0] != '"' })
	}
	other := func(t string) bool { return t != "string" && t != "null" }
	return slices.Contains(s.Type, "string") && !slices.ContainsFunc(s.Type, other)
}

// IsBytes reports whether strings of the schema are base64.
func IsBytes(schema json.RawMessage) bool {
	var s struct {
		Type     typeNames `json:"type"`
		Encoding string    `json:"contentEncoding"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Encoding == "base64" && slices.Contains(s.Type, "string")
}
