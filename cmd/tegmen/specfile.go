package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// specFlag defines --spec, which names the Spec that the other flags change.
func (o *options) specFlag(f *flags) {
	f.in("Specification")
	usage := "start from the specification in FILE, as JSON, or in standard input if it is -; " +
		"flags replace its values and add to its lists"
	f.list(flagHelp{[]string{"spec"}, "FILE", usage})
	f.Func("spec", usage, func(v string) error {
		if o.specFile = v; v == "" {
			f.given = append(f.given, func() error { return errors.New(`--spec "": name a file`) })
		}
		return nil
	})
}

// readSpec reads the file of --spec, for a command.
func (o *options) readSpec(command string) error {
	if o.specFile == "" {
		return nil
	}
	in := io.Reader(os.Stdin)
	if o.specFile == "-" {
		switch {
		case command == "shell":
			return errors.New("--spec -: name a file: standard input is the shell's")
		case o.interactive || o.tty:
			return errors.New("--spec - and -i or -t are mutually exclusive: both read standard input")
		}
	} else {
		file, err := os.Open(o.specFile)
		if err != nil {
			return fmt.Errorf("--spec %s: %w", o.specFile, errors.Unwrap(err))
		}
		defer file.Close()
		in = file
	}
	spec, err := engine.ParseSpec(in)
	if e := new(engine.InvalidError); errors.As(err, &e) {
		return fmt.Errorf("--spec %s: %s", o.specFile, problem(e, e.Field))
	}
	o.base, o.spec = spec, spec
	return err
}

// blame says where the parts of the Spec come from that an error is about.
func (o *options) blame(err error) error {
	if err == nil || o.specFile == "" {
		return err
	}
	return &blamed{err, o.specFile, tree(o.base), tree(o.spec)}
}

// blamed is an error about a Spec, some of which is from a file and some from flags.
type blamed struct {
	error
	file       string
	base, spec any // the file's, and with the flags, as decoded JSON
}

func (b *blamed) Unwrap() error { return b.error }

// nameOf is a field in the file if it stands there, and the flag that sets it otherwise.
func (b *blamed) nameOf(field string) string {
	inFile, ok := find(b.base, field)
	used, _ := find(b.spec, field)
	if field != "" && ok && reflect.DeepEqual(inFile, used) {
		return b.file + ": " + field
	}
	return flagOf(field)
}

// tree is the JSON of a Spec; nil if it has none.
func tree(s engine.Spec) (v any) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	_ = json.Unmarshal(text, &v) // cannot fail
	return v
}

// find is what stands at a path, such as "fs.mounts[1].target".
func find(v any, path string) (any, bool) {
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(in) {
				return nil, false
			}
			v = in[i]
		}
		if v == nil {
			return nil, false
		}
	}
	return v, true
}
