package main

import (
	"errors"
	"fmt"
	"io"
	"os"

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
