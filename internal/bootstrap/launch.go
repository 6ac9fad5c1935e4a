package bootstrap

import "encoding/json"

// Launch is how a piece of code is started in a sandbox.
type Launch struct {
	Argv []string // the program and its arguments
	Env  []string // "NAME=value", besides TEGMEN_FD and TEGMEN_TOKEN
	// Files are texts that the program finds as descriptors 4, 5, …, which can be
	// opened again by /proc/self/fd/N, or as files of these names where Script.Dir
	// says that there is no such thing.
	Files []string
	// Hello is set when the program asks for its code, which is in the answer to
	// its hello.
	Hello bool
}

// Tool is what a bootstrap needs to know of a tool before its program starts.
type Tool struct {
	Name        string // or "namespace.name"
	Description string
	Schema      json.RawMessage // of its arguments, an object
	Output      json.RawMessage // of its value; may be nil
}

// Identifier tells whether a name can be a variable's in every language here.
func Identifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
