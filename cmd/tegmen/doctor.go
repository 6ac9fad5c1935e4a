package main

import (
	"context"
	"fmt"

	"github.com/tegmen-dev/tegmen/engine"
)

func doctorMain(args []string) (int, error) {
	if err := noArguments("doctor", args); err != nil {
		return 0, err
	}
	code := 0
	for _, f := range engine.Diagnose(context.Background()) {
		mark := "ok  "
		if !f.OK {
			mark, code = "FAIL", 1
		}
		fmt.Printf("%s %s: %s\n", mark, f.What, f.Detail)
		if f.Remedy != "" {
			fmt.Printf("     %s\n", f.Remedy)
		}
	}
	return code, nil
}
