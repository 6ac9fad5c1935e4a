// Command tools runs Python that a model wrote, and that calls two functions of
// this program.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tegmen-dev/tegmen/broker"
	"github.com/tegmen-dev/tegmen/engine"
)

const code = `
degrees = {city: weather(city) for city in ("Oslo", "Rome")}
mail(to="bob", text="coldest: " + min(degrees, key=degrees.get))
degrees`

type place struct {
	City string `json:"city" jsonschema:"name of the city, in English"`
}

type letter struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

func main() {
	tools := new(broker.Set)
	broker.Add(tools, "weather", "Degrees Celsius in a city.", func(_ context.Context, in place) (float64, error) {
		return map[string]float64{"Oslo": -3.5, "Rome": 18}[in.City], nil
	})
	broker.Add(tools, "mail", "Sends a mail.", func(_ context.Context, in letter) (bool, error) {
		fmt.Printf("to %s: %s\n", in.To, in.Text)
		return true, nil
	})
	res, err := engine.RunCode(context.Background(), engine.Spec{}, engine.Code{Language: "python", Source: code}, tools)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s%s\n", res.Outcome, res.Code.Value, res.Stderr)
}
