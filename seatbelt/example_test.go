package seatbelt_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/tegmen-dev/tegmen/seatbelt"
)

// A job that may write one directory, except the hooks of its repository.
func Example() {
	p, err := seatbelt.New(seatbelt.Config{
		Write: []seatbelt.Path{{Name: "/private/tmp/job", Dir: true}},
		Keep:  []string{"/private/tmp/job/.git/hooks"},
	})
	if err != nil {
		log.Fatal(err)
	}
	// exec.Command("/usr/bin/sandbox-exec", append(p.Args(), "/bin/sh", "-c", "make")...)
	for _, param := range p.Params()[:3] {
		fmt.Println(param)
	}
	fmt.Println("paths in the text:", strings.Contains(p.String(), "/private/tmp/job"))
	// Output:
	// ABOVE_0=/private/tmp
	// WRITE_0=/private/tmp/job
	// KEEP_0=/private/tmp/job/.git/hooks
	// paths in the text: false
}

// New reports every problem of a Config at once.
func ExampleNew_invalid() {
	_, err := seatbelt.New(seatbelt.Config{Program: "perl", Ports: []int{0}})
	fmt.Println(err)
	// Output:
	// invalid seatbelt configuration: Program: "perl" is not absolute
	// invalid seatbelt configuration: Ports: 0 is not a port
}
