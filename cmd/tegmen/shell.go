package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

func shellMain(args []string) (int, error) {
	var o options
	args, err := o.parse("shell", args)
	if err != nil {
		return 0, err
	}
	if len(args) > 0 {
		return 0, fmt.Errorf("shell: takes no program: use tegmen run")
	}
	if !isTerminal(os.Stdin) {
		return 0, fmt.Errorf("shell: needs a terminal, but standard input is not one")
	}
	o.interactive, o.tty = true, true
	if o.spec.Limits.Wall == 0 {
		o.spec.Limits.Wall = engine.UnlimitedTime // the user ends it
	}
	if !slices.ContainsFunc(o.spec.Env, func(kv string) bool { return strings.HasPrefix(kv, "PS1=") }) {
		o.spec.Env = append(o.spec.Env, "PS1="+prompt(o.spec.Name)) // every shell expands $PWD in it
	}
	res, err := o.run(pickShell)
	if err != nil {
		return 0, err
	}
	return o.report(res)
}

// prompt shows that this is not the host's shell.
func prompt(name string) string {
	if name == "" {
		name = "tegmen"
	}
	return "[" + name + "] $PWD $ "
}

// pickShell prefers bash, without startup files: they would replace the prompt.
func pickShell(ctx context.Context, box *engine.Sandbox) (*engine.Cmd, error) {
	var none *engine.ExecError
	_, err := box.CommandContext(ctx, "bash", "-c", ":").Run()
	switch {
	case errors.As(err, &none):
		return box.CommandContext(ctx, "sh", "-i"), nil
	case err != nil:
		return nil, err
	}
	return box.CommandContext(ctx, "bash", "--noprofile", "--norc", "-i"), nil
}
