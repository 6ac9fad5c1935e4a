package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
)

// Code that calls functions of the host, and returns a value.
func ExampleSandbox_RunCode() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	type city struct {
		Name string `json:"name" jsonschema:"name of the city"`
	}
	degrees := map[string]int{"Oslo": 7, "Rome": 21}
	tools := new(broker.Set)
	broker.Add(tools, "temperature", "Returns the temperature in °C.", func(_ context.Context, c city) (int, error) {
		t, ok := degrees[c.Name]
		if !ok {
			return 0, fmt.Errorf("no such city: %s", c.Name)
		}
		return t, nil
	})
	res, err := box.RunCode(ctx, engine.Code{
		Language: "python",
		Source:   "{c: temperature(name=c) for c in cities}",
		Vars:     map[string]any{"cities": []string{"Oslo", "Rome"}},
	}, tools)
	if err != nil {
		log.Fatal(err)
	}
	var value map[string]int
	if err := res.Decode(&value); err != nil {
		log.Fatal(err) // the code failed
	}
	fmt.Println(value)
	for _, call := range res.Code.ToolCalls {
		fmt.Printf("%s(%s) = %s\n", call.Name, call.Arguments, call.Value)
	}
	// Output:
	// map[Oslo:7 Rome:21]
	// temperature({"name":"Oslo"}) = 7
	// temperature({"name":"Rome"}) = 21
}

// Pieces of code that share their variables.
func ExampleSandbox_Session() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	session := box.Session("python")
	defer session.Close()
	for _, source := range []string{"x = 20", "print(x)\nx + 1", "x / 0", "x * 2"} {
		res, err := session.RunCode(ctx, engine.Code{Source: source}, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := res.Err(); err != nil {
			fmt.Println("failed:", err) // and the session goes on
			continue
		}
		fmt.Printf("printed %q, value %q\n", res.Stdout, res.Code.Value)
	}
	// Output:
	// printed "", value ""
	// printed "20\n", value "21"
	// failed: ZeroDivisionError: division by zero
	// printed "", value "40"
}

// A policy that is asked before each call of a tool.
func Example_permit() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()

	type amount struct {
		Cents int `json:"cents"`
	}
	tools := new(broker.Set)
	broker.Add(tools, "pay", "Pays an amount.", func(_ context.Context, a amount) (string, error) {
		return fmt.Sprintf("paid %d", a.Cents), nil
	})
	paid := false
	tools.Permit = func(_ context.Context, c broker.Call) error {
		if c.Name == "pay" && paid {
			return errors.New("one payment a run")
		}
		paid = true
		return nil
	}
	res, err := eng.RunCode(ctx, engine.Spec{}, engine.Code{Language: "python", Source: `
print(pay(cents=5))
try:
    pay(cents=500)
except Exception as e:
    print("refused:", e)
`}, tools)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", res.Stdout)
	for _, call := range res.Code.ToolCalls {
		if call.Code == broker.CodeDenied {
			fmt.Printf("%s %s: %s\n", call.Name, call.Arguments, call.Error)
		}
	}
	// Output:
	// paid 5
	// refused: one payment a run
	// pay {"cents":500}: one payment a run
}
