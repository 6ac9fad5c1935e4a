package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Set is the tools of a run, and the policy of calling them. Fill it, then use
// it for any number of runs, at once too; do not change it any more then. The
// zero Set has no tools.
type Set struct {
	// Namespace pins the run to the tools of one namespace. A guest that names
	// another is refused, and one that names none gets this one's. "" pins none.
	Namespace string
	// Allow lists the tools that the run may see and call: "query" in whatever
	// namespace, or "db.query". nil allows all, an empty list none.
	Allow []string
	// Permit is asked before each call, after its arguments have been found
	// valid. The text of its error is what the guest is told. It may be called
	// concurrently, and returns soon when its context is done. nil permits.
	Permit func(ctx context.Context, c Call) error
	// Audit is told of each call that was asked for, when it is over, refused
	// ones too. It may be called concurrently. nil tells nobody.
	Audit func(r Record)
	// Log gets a line for each call, and the stack of a panic. nil is silent.
	Log *slog.Logger

	tools []*tool // in the order of adding
	errs  []error
}

// Tool is a tool whose schema is data. What its schema leaves open, a guest
// fills: beside a member "path", "Path" is another one for the schema, and the
// same one for encoding/json. "additionalProperties": false refuses it.
type Tool struct {
	// Name is the tool's, or "namespace.name". Each is of letters, digits, "_"
	// and "-", at most 64, and does not start with a digit or "-".
	Name        string
	Description string          // for whoever writes the code
	Schema      json.RawMessage // JSON Schema of the arguments, which are an object; nil accepts every object
	Output      json.RawMessage // JSON Schema of the value; nil does not say
	Timeout     time.Duration   // of a call; 0 means Limits.CallTime
	// Call is the tool. What it returns is JSON; nil is null. It may be called
	// concurrently, and returns soon when its context is done.
	Call func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error)
}

// Call is one call that a guest asks for.
type Call struct {
	Run       string          // id of the run
	ID        string          // id of the call, unlike any other's
	Namespace string          // of the tool; may be ""
	Name      string          // of the tool
	Arguments json.RawMessage // a JSON object
}

// Record says what became of a call.
type Record struct {
	Call
	Started  time.Time
	Duration time.Duration
	Code     Code   // 0 when it succeeded
	Error    string // what the guest was told; "" when it succeeded
	Panic    string // what a tool or hook panicked with, and its stack: the guest is not told
	Bytes    int    // of the answer that the guest was given, as JSON
	// Value is what the guest was given; nil when the call failed.
	Value json.RawMessage
}

// tool is one of a Set.
type tool struct {
	info    toolInfo
	timeout time.Duration
	quick   atomic.Bool // the last call was; see reader
	schema  func() (*jsonschema.Resolved, error)
	call    func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error)
}

func (t *tool) fullName() string { return qualified(t.info.Namespace, t.info.Name) }

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

// Add adds a function as a tool: name may be "namespace.name". In is a struct,
// whose fields are the arguments, named and described by the tags json and
// jsonschema; a field with omitempty or omitzero may be missing. Arguments are
// validated against the schema derived from In before f is called. What f
// returns is the guest's value, as JSON; a []byte is base64 on the way. An error
// is the guest's too, and an *Error chooses its type. f may be called
// concurrently, and returns soon when its context is done: by then the guest has
// been told that it is late, or is gone.
//
// A tool that cannot be added makes each run with the set fail; see Set.Err.
func Add[In, Out any](s *Set, name, description string, f func(ctx context.Context, in In) (Out, error)) {
	if f == nil {
		s.fail(name, errors.New("no function"))
		return
	}
	in, err := schemaOf[In]()
	if err == nil && in.Type != "object" {
		err = fmt.Errorf("its arguments are a %s; they have to be a struct or a map", reflect.TypeFor[In]())
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
				return nil, refuse(CodeParams, "arguments of %s: %v", name, err)
			}
			out, err := f(ctx, in)
			if err != nil {
				return nil, err
			}
			value, err := json.Marshal(out)
			if err != nil {
				return nil, refuse(CodeInternal, "%s returned what is not JSON: %v", name, err)
			}
			return value, nil
		},
	})
}

// decode takes 1.0 for an integer, as JSON Schema does and encoding/json does not.
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

// schemaOf derives the schema of a type, in which a []byte is the string that
// encoding/json makes of it.
func schemaOf[T any]() (*jsonschema.Schema, error) {
	return jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte](): {Types: []string{"null", "string"}, ContentEncoding: "base64"},
		// Any JSON at all.
		reflect.TypeFor[json.RawMessage](): {},
	}})
}

func text(s *jsonschema.Schema) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a schema that was derived is one
	}
	return b
}

// A name can be written as an identifier in the languages of guests, but for
// "-", which they replace.
var validName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]{0,63}\.)?[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
})

// AddRaw adds a tool that is only known when the program runs.
func (s *Set) AddRaw(t Tool) {
	namespace, name, ok := strings.Cut(t.Name, ".")
	if !ok {
		namespace, name = "", t.Name
	}
	if t.Schema == nil {
		t.Schema = json.RawMessage(`{"type":"object"}`)
	}
	one := &tool{
		info:    toolInfo{Name: name, Namespace: namespace, Description: t.Description, Schema: compact(t.Schema), Output: compact(t.Output)},
		timeout: t.Timeout, call: t.Call,
	}
	switch {
	case !validName().MatchString(t.Name):
		s.fail(t.Name, errors.New("not a name: letters, digits, _ and -, at most 64, perhaps after a namespace and a dot"))
	case slices.ContainsFunc(s.tools, func(o *tool) bool { return o.fullName() == t.Name }):
		s.fail(t.Name, errors.New("added twice"))
	case t.Call == nil:
		s.fail(t.Name, errors.New("no function"))
	case t.Timeout < 0:
		s.fail(t.Name, errors.New("a negative timeout"))
	case one.info.Schema == nil || t.Output != nil && one.info.Output == nil:
		s.fail(t.Name, errors.New("its schema is not JSON"))
	}
	// Resolved at the first call of the tool: most runs call few of many.
	one.schema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
		var schema jsonschema.Schema
		if err := json.Unmarshal(one.info.Schema, &schema); err != nil {
			return nil, err
		}
		return schema.Resolve(nil)
	})
	s.tools = append(s.tools, one)
}

// compact is JSON on one line; nil for what is no JSON.
func compact(j json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, j) != nil {
		return nil
	}
	return b.Bytes()
}

func (s *Set) fail(name string, err error) {
	s.errs = append(s.errs, fmt.Errorf("tool %q: %w", name, err))
}

// Err is what is wrong with the set, joined; nil when nothing is. It resolves
// every schema.
func (s *Set) Err() error {
	errs := slices.Clone(s.errs)
	for _, t := range s.tools {
		if t.info.Schema == nil {
			continue
		}
		if _, err := t.schema(); err != nil {
			errs = append(errs, fmt.Errorf("tool %q: its schema: %w", t.fullName(), err))
		}
	}
	known := func(match func(t *tool) bool) bool { return slices.ContainsFunc(s.tools, match) }
	for _, a := range s.Allow {
		if !known(func(t *tool) bool { return a == t.info.Name || a == t.fullName() }) {
			errs = append(errs, fmt.Errorf("allowed tool %q: no such tool", a))
		}
	}
	if ns := s.Namespace; ns != "" && !known(func(t *tool) bool { return t.info.Namespace == ns }) {
		errs = append(errs, fmt.Errorf("namespace %q: no tool is in it", ns))
	}
	return errors.Join(errs...)
}

// Tools lists the tools that a run may see, by full name, with their
// parameters in order.
func (s *Set) Tools() []Tool {
	var all []Tool
	for _, t := range s.visible() {
		all = append(all, Tool{Name: t.fullName(), Description: t.info.Description, Schema: t.info.Schema, Output: t.info.Output, Timeout: t.timeout, Call: t.call})
	}
	return all
}

func (s *Set) visible() []*tool {
	return slices.DeleteFunc(slices.Clone(s.tools), func(t *tool) bool {
		if s.Namespace != "" && t.info.Namespace != s.Namespace {
			return true
		}
		return s.Allow != nil && !slices.Contains(s.Allow, t.info.Name) && !slices.Contains(s.Allow, t.fullName())
	})
}

// catalog is a Set as one run sees it.
type catalog struct {
	set    *Set
	byName map[string]*tool
	infos  []toolInfo
}

func newCatalog(s *Set) *catalog {
	if s == nil {
		s = new(Set)
	}
	c := &catalog{set: s, byName: make(map[string]*tool), infos: []toolInfo{}}
	for _, t := range s.visible() {
		c.byName[t.fullName()] = t
		c.infos = append(c.infos, t.info)
	}
	return c
}

// find resolves what a guest asks for. The host's namespace is authoritative,
// and no name is looked for in another namespace than was asked for: a guest
// could else reach tools that its run was not meant to have.
func (c *catalog) find(namespace, name string) (*tool, *Error) {
	if namespace == "" {
		if before, after, ok := strings.Cut(name, "."); ok {
			namespace, name = before, after
		}
	}
	if pin := c.set.Namespace; pin != "" {
		if namespace != "" && namespace != pin {
			return nil, refuse(CodeNotFound, "namespace not allowed: %.64s", namespace)
		}
		namespace = pin
	}
	t := c.byName[qualified(namespace, name)]
	if t == nil {
		return nil, refuse(CodeNotFound, "no tool %.129q", qualified(namespace, name))
	}
	return t, nil
}
