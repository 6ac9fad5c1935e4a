package engine_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

func Example() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{Limits: engine.Limits{Wall: 10 * time.Second}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	res, err := box.CommandContext(ctx, "python3", "-c", "print(6*7)").Run()
	if err != nil {
		log.Fatal(err) // it could not be started
	}
	fmt.Printf("%s %s", res.Outcome, res.Stdout) // ok 42
}
