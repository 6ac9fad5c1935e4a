package main

import "fmt"

type report struct{ failed bool }

// row prints one number, and after it what breaks its bound.
func (r *report) row(ok bool, name, value string, broken ...string) {
	mark := "  "
	if !ok {
		mark, r.failed = "! ", true
	}
	fmt.Printf("%s%-22s %s\n", mark, name, value)
	for _, b := range broken {
		fmt.Println("    ", b)
	}
}
