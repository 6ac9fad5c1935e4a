package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/workspace"
)

// What --json prints is as docs/schema/result.schema.json says, the command's own fields
// included, and is still a Result.
func TestPrintJSON(t *testing.T) {
	text, err := os.ReadFile("../../docs/schema/result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	info := workspace.Info{Type: workspace.File, Size: 3, Mode: 0o644}
	all := []workspace.Change{
		{Path: "a<b", Kind: workspace.Modified, Info: info, Was: info},
		{Path: "\xff", Kind: workspace.Created, Info: info},
	}
	for _, o := range []options{
		{}, {overlay: overlayResult{listed: true}},
		{commit: true, overlay: overlayResult{listed: true, committed: true, changes: all}},
	} {
		want := engine.Result{Outcome: engine.OutcomeOK, Start: engine.StartInfo{Level: engine.LevelNamespaces}}
		var b bytes.Buffer
		if err := o.printJSON(&b, &want); err != nil {
			t.Fatal(err)
		}
		line := b.String()
		if strings.Count(line, "\n") != 1 || strings.Contains(line, `\u003c`) {
			t.Errorf("not a plain line: %s", line)
		}
		var v any
		var r engine.Result
		if err := json.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if err := json.Unmarshal(b.Bytes(), &r); err != nil || r.Outcome != want.Outcome {
			t.Errorf("%+v, %v: %s", r, err, line)
		}
	}
	changes := schema.Properties["changes"].Items
	for _, c := range []struct {
		typ    reflect.Type
		schema *jsonschema.Schema
	}{{reflect.TypeFor[jsonChange](), changes}, {reflect.TypeFor[jsonChangeInfo](), changes.Properties["was"]}} {
		var keys []string
		for i := range c.typ.NumField() {
			key, _, _ := strings.Cut(c.typ.Field(i).Tag.Get("json"), ",")
			keys = append(keys, key)
		}
		for key := range c.schema.Properties {
			if !slices.Contains(keys, key) {
				t.Errorf("only the schema has %s", key)
			}
		}
		if len(keys) != len(c.schema.Properties) {
			t.Errorf("the schema has %d keys, not %v", len(c.schema.Properties), keys)
		}
	}
}
