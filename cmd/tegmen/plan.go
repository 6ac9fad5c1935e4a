package main

import (
	"fmt"

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
		return 0, err
	}
	fmt.Print(p)
	if o.calls {
		fmt.Print("\n", p.Calls())
	}
	return 0, nil
}
