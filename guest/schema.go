package guest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// route is an exact name, "db.query", as the members of a call.
func route(name string) string {
	var r struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
	}
	r.Name = name
	if space, bare, found := strings.Cut(name, "."); found {
		r.Name, r.Namespace = bare, space
	}
	b, _ := json.Marshal(r) // strings always marshal
	return string(b[1 : len(b)-1])
}

// parameter is a property of the arguments.
type parameter struct {
	name   string
	schema json.RawMessage
}

// parameters lists the properties of a schema in order, which a map would lose.
func parameters(schema json.RawMessage) (all []parameter) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil // has none
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return all
		}
		p := parameter{name: name.(string)}
		if d.Decode(&p.schema) != nil {
			return all
		}
		all = append(all, p)
	}
	return all
}

// types is the "type" of a schema, which is one or a list.
type types []string

// UnmarshalJSON takes either.
func (t *types) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = make(types, 1)
	return json.Unmarshal(b, &(*t)[0])
}

// textual says whether what fits the schema is a string, if it is not null.
func textual(schema json.RawMessage) bool {
	var s struct {
		Type types             `json:"type"`
		Enum []json.RawMessage `json:"enum"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	if s.Type == nil {
		return s.Enum != nil && !slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool { return v[0] != '"' })
	}
	return slices.Contains(s.Type, "string") && !slices.ContainsFunc(s.Type, func(t string) bool { return t != "string" && t != "null" })
}

// isBytes says whether the string of this schema is base64.
func isBytes(schema json.RawMessage) bool {
	var s struct {
		Type     types  `json:"type"`
		Encoding string `json:"contentEncoding"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Encoding == "base64" && slices.Contains(s.Type, "string")
}
