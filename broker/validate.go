package broker

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// validate tells whether the tool may be given the arguments. Those that have a
// member twice are refused: decoders take the first, the last or both together,
// so that a tool or a hook could get others than have been validated.
func (c *call) validate() *Error {
	if c.Arguments[0] != '{' {
		return refuse(CodeParams, "tool arguments must be an object")
	}
	if c.values > maxValues {
		return refuse(CodeTooLarge, "arguments of %s: more than %d values", c.tool.fullName(), maxValues)
	}
	schema, err := c.tool.schema()
	if err != nil {
		return refuse(CodeInternal, "schema of %s: %v", c.tool.fullName(), err)
	}
	var v map[string]any
	if err := json.Unmarshal(c.Arguments, &v); err != nil {
		return refuse(CodeParams, "arguments of %s: %v", c.tool.fullName(), err)
	}
	if membersOf(v) != c.members {
		return refuse(CodeParams, "arguments of %s: an object has a member twice", c.tool.fullName())
	}
	if err := schema.Validate(v); err != nil {
		return refuse(CodeParams, "arguments of %s: %s", c.tool.fullName(), explain(err, schema.Schema()))
	}
	return nil
}

// explain says what is wrong in the words of who wrote the call.
func explain(err error, s *jsonschema.Schema) string {
	text := strings.TrimPrefix(err.Error(), "validating root: ")
	if !strings.HasPrefix(text, "unexpected additional properties") {
		return text
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	if len(names) == 0 {
		return text + "; it takes none"
	}
	return text + "; it has " + strings.Join(names, ", ")
}

// What arguments are decoded to can be much longer than their text: an array of
// numbers a dozen times, one of small objects fifty times.
const (
	maxValues = 1 << 18 // of a call
	valueSize = 32      // bytes that each counts for, beside its text
)

// survey counts, in JSON that is valid, the values and the members of objects.
func survey(j []byte) (values, members int) {
	for i := 0; i < len(j); i++ {
		switch j[i] {
		case '"':
			for i++; j[i] != '"'; i++ {
				if j[i] == '\\' {
					i++
				}
			}
		case ',', '[', '{':
			values++
		case ':':
			members++
		}
	}
	return values, members
}

// membersOf counts the members of all objects in what was decoded, where one of
// a name is left.
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
