package broker

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tegmen-dev/tegmen/internal/jsoncount"
)

// maxValues is how many JSON values the arguments of a call may have: decoded, an
// array of small objects takes fifty times the memory of its text.
const maxValues = 1 << 18

// validate checks arguments against the tool's schema. Duplicate members are refused:
// decoders take the first, the last or a mix, so a tool or hook could otherwise see
// other arguments than those that were validated.
func (t *tool) validate(arguments json.RawMessage) error {
	name := t.Name
	if !bytes.HasPrefix(bytes.TrimLeft(arguments, " \t\r\n"), []byte("{")) {
		return Errorf(CodeParams, "tool arguments must be an object")
	}
	values, members := jsoncount.Count(arguments)
	if values > maxValues {
		return Errorf(CodeTooLarge, "arguments of %s: more than %d values", name, maxValues)
	}
	schema, err := t.schema()
	if err != nil {
		return Errorf(CodeInternal, "schema of %s: %v", name, err)
	}
	var v map[string]any
	if err := json.Unmarshal(arguments, &v); err != nil {
		return Errorf(CodeParams, "arguments of %s: %v", name, err)
	}
	if membersOf(v) != members {
		return Errorf(CodeParams, "arguments of %s: duplicate member in an object", name)
	}
	if err := schema.Validate(v); err != nil {
		return Errorf(CodeParams, "arguments of %s: %s", name, explain(err, schema.Schema()))
	}
	return nil
}

// explain adds the names of the parameters where the caller used another.
func explain(err error, s *jsonschema.Schema) string {
	text := strings.TrimPrefix(err.Error(), "validating root: ")
	if !strings.HasPrefix(text, "unexpected additional properties") {
		return text
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	if len(names) == 0 {
		return text + "; it takes no arguments"
	}
	return text + "; it takes " + strings.Join(names, ", ")
}

// membersOf counts the members of all objects in a decoded value, in which duplicates
// have been merged.
func membersOf(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, e := range v {
			n += membersOf(e)
		}
	case []any:
		for _, e := range v {
			n += membersOf(e)
		}
	}
	return n
}
