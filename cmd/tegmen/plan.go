package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/tegmen-dev/tegmen/engine"
)

func planMain(args []string) (int, error) {
	var o options
	_, err := o.parse("plan", args)
	if err != nil {
		return 0, err
	}
	host, err := o.host()
	if err != nil {
		return 0, err
	}
	p, err := engine.Compile(o.spec, host)
	if err != nil {
		return 0, o.blame(err)
	}
	if o.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return 0, enc.Encode(p.Spec)
	}
	fmt.Print(p)
	if o.calls {
		fmt.Print("\n", p.Calls())
	}
	return 0, nil
}
