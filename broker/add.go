package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Add adds a function as a tool named "name" or "namespace.name". In is a struct or
// map, whose fields are the arguments: named by their json tag, described by their
// jsonschema tag, optional with omitempty or omitzero. Arguments are validated against
// the schema derived from In before f is called. The guest receives what f returns as
// JSON, with a []byte in base64, or its error; an *Error chooses the type. f may be
// called concurrently, and must return soon after its context is done: the guest has
// been answered by then, or is gone.
//
// If the function cannot be added, each run with the set fails; see Set.Err.
func Add[In, Out any](s *Set, name, description string, f func(ctx context.Context, in In) (Out, error)) {
	if f == nil {
		s.fail(name, errors.New("function is nil"))
		return
	}
	in, err := schemaOf[In]()
	if err == nil && in.Type != "object" {
		err = fmt.Errorf("argument type %s: want a struct or a map", reflect.TypeFor[In]())
	}
	out, outErr := schemaOf[Out]()
	if err := errors.Join(err, outErr); err != nil {
		s.fail(name, err)
		return
	}
	s.AddRaw(Tool{
		Name: name, Description: description, Schema: text(in), Output: text(out),
		Call: func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
			var in In
			if err := decode(arguments, &in); err != nil {
				return nil, Errorf(CodeParams, "arguments of %s: %v", name, err)
			}
			out, err := f(ctx, in)
			if err != nil {
				return nil, err
			}
			value, err := json.Marshal(out)
			if err != nil {
				return nil, Errorf(CodeInternal, "%s returned a value that is not JSON: %v", name, err)
			}
			return value, nil
		},
	})
}

// decode accepts 1.0 as an integer, as JSON Schema does and encoding/json does not.
func decode(arguments json.RawMessage, in any) error {
	err := json.Unmarshal(arguments, in)
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) || !strings.HasPrefix(kind.Value, "number") {
		return err
	}
	var v any
	if json.Unmarshal(arguments, &v) != nil {
		return err
	}
	again, marshalErr := json.Marshal(v)
	if marshalErr != nil {
		return err
	}
	return json.Unmarshal(again, in)
}

// schemaOf derives the schema of a type. A []byte is a base64 string, as in
// encoding/json.
func schemaOf[T any]() (*jsonschema.Schema, error) {
	return jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte]():          {Types: []string{"null", "string"}, ContentEncoding: "base64"},
		reflect.TypeFor[json.RawMessage](): {}, // any JSON
	}})
}

func text(s *jsonschema.Schema) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a derived schema is valid
	}
	return b
}
