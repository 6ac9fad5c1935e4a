package engine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tegmen-dev/tegmen/seccomp"
)

func readSchema(t *testing.T, name string) (*jsonschema.Schema, *jsonschema.Resolved) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "schema", name))
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return &s, r
}

// The schemas accept what is written, and each key of theirs is written by something.
func TestSchemas(t *testing.T) {
	specSchema, spec := readSchema(t, "spec.schema.json")
	resultSchema, result := readSchema(t, "result.schema.json")
	for _, c := range []struct {
		schema *jsonschema.Resolved
		file   string
	}{{spec, "spec_zero.json"}, {spec, "spec_full.json"}, {result, "result_full.json"}} {
		text, err := os.ReadFile(filepath.Join("testdata", "json", c.file))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if err := c.schema.Validate(v); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
	}
	for _, bad := range []string{`{"limits": {"memory": 1}}`, `{"user": {"uid": 1}}`, `{"limits": {"wall_seconds": "1m"}}`,
		`{"limits": {"pids": -1}}`, `{"fs": {"mounts": [{"mode": "0999"}]}}`, `{"degrade": ["all"]}`} {
		var v any
		if err := json.Unmarshal([]byte(bad), &v); err != nil || spec.Validate(v) == nil {
			t.Errorf("%s is valid: %v", bad, err)
		}
	}
	compareKeys(t, "spec", schemaKeys(specSchema, ""), specKeys(&Spec{User: new(User)}, ""))
	want := append(tagKeys(reflect.TypeFor[resultJSON](), ""), "changes", "committed") // package main tests these
	got := slices.DeleteFunc(schemaKeys(resultSchema, ""), func(k string) bool { return strings.HasPrefix(k, "changes.") })
	compareKeys(t, "result", got, want)
	for _, s := range []*jsonschema.Schema{specSchema, resultSchema} {
		checkDescribed(t, "", s)
	}
}

func compareKeys(t *testing.T, what string, schema, code []string) {
	t.Helper()
	for _, k := range schema {
		if !slices.Contains(code, k) {
			t.Errorf("%s: only the schema has %s", what, k)
		}
	}
	for _, k := range code {
		if !slices.Contains(schema, k) {
			t.Errorf("%s: the schema lacks %s", what, k)
		}
	}
}

// schemaKeys are the paths of the properties of a schema, without indices.
func schemaKeys(s *jsonschema.Schema, path string) (keys []string) {
	if s == nil {
		return nil
	}
	for k, p := range s.Properties {
		keys = append(append(keys, within(path, k)), schemaKeys(p, within(path, k))...)
	}
	keys = append(keys, schemaKeys(s.Items, path)...)
	if len(s.Properties) == 0 {
		keys = append(keys, schemaKeys(s.AdditionalProperties, path)...)
	}
	return keys
}

// specKeys are the paths that a Spec's JSON may have.
func specKeys(o jsonObject, path string) (keys []string) {
	for _, m := range o.members() {
		at := within(path, m.key)
		keys = append(keys, at)
		switch p := m.at.(type) {
		case jsonObject:
			keys = append(keys, specKeys(p, at)...)
		case jsonOptional:
			keys = append(keys, specKeys(p.get(), at)...)
		case jsonArray:
			if o, ok := p.add().(jsonObject); ok {
				keys = append(keys, specKeys(o, at)...)
			}
		case **seccomp.Policy:
			keys = append(keys, tagKeys(reflect.TypeFor[seccomp.Policy](), at)...)
		}
	}
	return keys
}

// tagKeys are the paths that the JSON of a struct with tags may have.
func tagKeys(typ reflect.Type, path string) (keys []string) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		return nil
	}
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		keys = append(append(keys, within(path, name)), tagKeys(typ.Field(i).Type, within(path, name))...)
	}
	return keys
}

// checkDescribed: each property has a description, which names the unit if its key does, and
// no object takes keys that are not listed.
func checkDescribed(t *testing.T, path string, s *jsonschema.Schema) {
	t.Helper()
	for k, p := range s.Properties {
		at := within(path, k)
		if p.Description == "" || !strings.HasSuffix(p.Description, ".") {
			t.Errorf("%s: no description: %q", at, p.Description)
		}
		for suffix, unit := range map[string]string{"_bytes": "byte", "seconds": "second", "bytes_per_second": "per second"} {
			if strings.HasSuffix(k, suffix) && !strings.Contains(strings.ToLower(p.Description), unit) {
				t.Errorf("%s: the description does not say %s", at, unit)
			}
		}
		checkDescribed(t, at, p)
	}
	if len(s.Properties) > 0 && !reflect.DeepEqual(s.AdditionalProperties, &jsonschema.Schema{Not: &jsonschema.Schema{}}) {
		t.Errorf("%s: takes any key", path)
	}
	if s.Items != nil {
		checkDescribed(t, path+"[]", s.Items)
	}
}

// The schemas' lists and defaults are the code's.
func TestSchemaValues(t *testing.T) {
	spec, _ := readSchema(t, "spec.schema.json")
	result, _ := readSchema(t, "result.schema.json")
	require := spec.Properties["require"].Items.Properties
	for _, c := range []struct {
		name string
		got  []any
		want []string
	}{
		{"outcome", result.Properties["outcome"].Enum, names(Outcomes())},
		{"level", result.Properties["level"].Enum, names([]Level{LevelNamespaces, LevelLandlock, LevelSeatbelt, LevelNone})},
		{"event", result.Properties["events"].Items.Properties["limit"].Enum, names(limitNames())},
		{"dropped", result.Properties["dropped"].Items.Properties["protection"].Enum,
			names(append(Protections(), ProtectIsolation))},
		{"degrade", spec.Properties["degrade"].Items.Enum, names(Protections())},
		{"require.limit", require["limit"].Enum, names(limitNames())},
		{"require.enforcer", require["enforcer"].Enum, names(EnforcerKinds())},
		{"profile", spec.Properties["seccomp"].Properties["profile"].Enum, append(seccomp.Names(), SeccompOff)},
	} {
		got := names(c.got)
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the schema has %v, the code %v", c.name, got, c.want)
		}
	}
	defaults := Limits{}.withDefaults(Host{})
	for _, f := range limitFields {
		want, err := writeValue(nil, "", f.at(&defaults).json)
		if f.value == 0 { // the machine's, or none
			want = nil
		}
		if got := spec.Properties["limits"].Properties[f.json].Default; err != nil || string(got) != string(want) {
			t.Errorf("default of %s: the schema has %s, the code %s, %v", f.json, got, want, err)
		}
	}
}

func names[T any](list []T) (out []string) {
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return out
}
