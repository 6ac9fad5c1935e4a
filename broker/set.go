package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Set holds the tools of a run and the policy for calling them. Fill it before the
// first run and do not change it afterwards; any number of runs may then use it
// concurrently. The zero Set has no tools.
type Set struct {
	// Namespace pins the run to the tools of one namespace. A guest that names another
	// one is refused; a guest that names none gets this one. "" pins none.
	Namespace string
	// Allow lists the tools that the run may see and call: "query" in any namespace, or
	// "db.query". nil allows all tools, an empty list none.
	Allow []string
	// Permit is asked before each call, after its arguments have passed validation. The
	// guest receives the text of its error with CodeDenied, and Type and Data if it is
	// an *Error. It may be called concurrently, and must return soon after its context
	// is done. nil permits every call.
	Permit func(ctx context.Context, c Call) error
	// Audit receives each call when it has ended, including refused ones. It may be
	// called concurrently. May be nil.
	Audit func(r Record)
	// Log receives a line for each call, and the stack of a panic. nil is silent.
	Log *slog.Logger

	tools  []*tool          // in the order of adding
	byName map[string]*tool // by full name
	errs   []error
}

// Tool is a tool with a schema that is data. Members that the schema does not mention
// are passed on as they are. Beware of encoding/json: to the schema "Path" is another
// member than "path", to json.Unmarshal the same. "additionalProperties": false refuses it.
type Tool struct {
	// Name is "name" or "namespace.name". Both parts consist of at most 64 letters,
	// digits, "_" and "-", and start with a letter or "_".
	Name        string
	Description string          // for the author of the code
	Schema      json.RawMessage // JSON Schema of the arguments, an object; nil accepts any object
	Output      json.RawMessage // JSON Schema of the value; nil: unknown
	Timeout     time.Duration   // of a call; 0 means Limits.CallTime
	// Call runs the tool and returns JSON; nil means null. It may be called concurrently,
	// and must return soon after its context is done.
	Call func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error)
}

// tool is a Tool of a Set.
type tool struct {
	Tool
	namespace, name string
	schema          func() (*jsonschema.Resolved, error)
}

// A valid name is an identifier in the languages of guests, which replace "-".
var validName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]{0,63}\.)?[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
})

// AddRaw adds a tool whose schema is known only at run time. If the tool is invalid,
// each run with the set fails; see Err.
func (s *Set) AddRaw(t Tool) {
	one := &tool{}
	var qualified bool
	if one.namespace, one.name, qualified = strings.Cut(t.Name, "."); !qualified {
		one.namespace, one.name = "", t.Name
	}
	if t.Schema == nil {
		t.Schema = json.RawMessage(`{"type":"object"}`)
	}
	one.Tool = t
	one.Schema, one.Output = compact(t.Schema), compact(t.Output)
	switch {
	case !validName().MatchString(t.Name):
		s.fail(t.Name, errors.New(
			"not a name: want at most 64 letters, digits, _ and -, optionally after a namespace and a dot"))
	case s.byName[t.Name] != nil:
		s.fail(t.Name, errors.New("added twice"))
	case t.Call == nil:
		s.fail(t.Name, errors.New("function is nil"))
	case t.Timeout < 0:
		s.fail(t.Name, errors.New("negative timeout"))
	case one.Schema == nil || t.Output != nil && one.Output == nil:
		s.fail(t.Name, errors.New("schema is not valid JSON"))
	}
	// Resolved at the first call of the tool: most runs call few of many.
	one.schema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
		var schema jsonschema.Schema
		if err := json.Unmarshal(one.Schema, &schema); err != nil {
			return nil, err
		}
		return schema.Resolve(nil)
	})
	s.tools = append(s.tools, one)
	if s.byName == nil {
		s.byName = make(map[string]*tool)
	}
	s.byName[t.Name] = one
}

// compact returns JSON on one line, or nil if it is invalid.
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

// Err returns all problems of the set, joined, or nil. It resolves every schema.
func (s *Set) Err() error {
	errs := slices.Clone(s.errs)
	for _, t := range s.tools {
		if t.Schema == nil {
			continue
		}
		if _, err := t.schema(); err != nil {
			errs = append(errs, fmt.Errorf("tool %q: schema: %w", t.Name, err))
		}
	}
	for _, a := range s.Allow {
		if !slices.ContainsFunc(s.tools, func(t *tool) bool { return a == t.name || a == t.Name }) {
			errs = append(errs, fmt.Errorf("allowed tool %q: no such tool", a))
		}
	}
	inNamespace := func(t *tool) bool { return t.namespace == s.Namespace }
	if s.Namespace != "" && !slices.ContainsFunc(s.tools, inNamespace) {
		errs = append(errs, fmt.Errorf("namespace %q: no tool is in it", s.Namespace))
	}
	return errors.Join(errs...)
}

// Tools returns the tools that a run may see, in the order of adding. A nil Set has
// none.
func (s *Set) Tools() []Tool {
	if s == nil {
		return nil
	}
	var all []Tool
	for _, t := range s.tools {
		if s.shows(t) {
			all = append(all, t.Tool)
		}
	}
	return all
}

// shows reports whether the run may see and call the tool.
func (s *Set) shows(t *tool) bool {
	if s.Namespace != "" && t.namespace != s.Namespace {
		return false
	}
	return s.Allow == nil || slices.Contains(s.Allow, t.name) || slices.Contains(s.Allow, t.Name)
}

// Lookup returns the tool that a guest means by a namespace, which may be "", and a
// name, which may be "namespace.name". The error is an *Error with CodeNotFound, for
// hidden tools as for unknown ones.
func (s *Set) Lookup(namespace, name string) (Tool, error) {
	t, err := s.find(namespace, name)
	if err != nil {
		return Tool{}, err
	}
	return t.Tool, nil
}

// find implements Lookup. The host's namespace is authoritative, and there is no
// fallback from one namespace to another: a guest could otherwise reach tools that its
// run was not meant to have.
func (s *Set) find(namespace, name string) (*tool, error) {
	if namespace == "" {
		if before, after, ok := strings.Cut(name, "."); ok {
			namespace, name = before, after
		}
	}
	if s.Namespace != "" {
		if namespace != "" && namespace != s.Namespace {
			return nil, Errorf(CodeNotFound, "namespace not allowed: %.64s", namespace)
		}
		namespace = s.Namespace
	}
	full := fullName(namespace, name)
	if t := s.byName[full]; t != nil && s.shows(t) {
		return t, nil
	}
	return nil, Errorf(CodeNotFound, "no tool %.129q", full)
}

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}
