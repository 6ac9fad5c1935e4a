package bootstrap

import "encoding/json"

// Launch says how to start a piece of code in a sandbox.
type Launch struct {
	Argv []string // the program and its arguments
	Env  []string // "NAME=value", besides TEGMEN_FD and TEGMEN_TOKEN
	// Files are texts for the program: as descriptors 4, 5, …, which it can open again
	// by /proc/self/fd/N, or as the files "4", "5", … in Script.Dir if that is set.
	Files []string
	Hello bool // the program sends hello and receives its code in the answer
}

// Tool describes a tool to a bootstrap that needs it before the program starts.
type Tool struct {
	Name        string          // "name" or "namespace.name"
	Description string          // for the author of the code
	Schema      json.RawMessage // JSON Schema of the arguments, an object
	Output      json.RawMessage // JSON Schema of the value; may be nil
}

// Identifier reports whether a name is valid for a variable in each language.
func Identifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
