package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tegmen-dev/tegmen/broker"
)

// A Set with a policy, called without a sandbox.
func Example() {
	type query struct {
		City string `json:"city" jsonschema:"name of the city"`
	}
	tools := new(broker.Set)
	broker.Add(tools, "weather", "Degrees Celsius in a city.", func(_ context.Context, in query) (float64, error) {
		if in.City != "Oslo" {
			return 0, &broker.Error{Type: "UnknownCity", Message: in.City + " has no weather station"}
		}
		return 21.5, nil
	})
	broker.Add(tools, "db.drop", "Deletes the database.", func(context.Context, struct{}) (bool, error) { return true, nil })
	tools.Permit = func(_ context.Context, c broker.Call) error {
		if c.FullName() == "db.drop" {
			return errors.New("ask the administrator")
		}
		return nil
	}
	tools.Audit = func(r broker.Record) { fmt.Printf("%s %s: %s\n", r.FullName(), r.Arguments, r.Code) }

	for _, c := range []broker.Call{
		{Name: "weather", Arguments: json.RawMessage(`{"city":"Oslo"}`)},
		{Name: "weather", Arguments: json.RawMessage(`{"town":"Oslo"}`)},
		{Name: "db.drop"},
	} {
		value, err := tools.Call(context.Background(), c)
		fmt.Println(string(value), err)
	}
	// Output:
	// weather {"city":"Oslo"}: code 0
	// 21.5 <nil>
	// weather {"town":"Oslo"}: invalid_params
	//  arguments of weather: unexpected additional properties ["town"]; it takes city
	// db.drop {}: denied
	//  ask the administrator
}
