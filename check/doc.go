// Package check looks at code before it runs, and refuses what a model hardly
// ever means to do: an import that a snippet does not need, open(), rm -rf /.
//
// It is a convenience and never a boundary. It spares a run, and its error tells
// whoever wrote the code what to write instead; getting around it is easy
// (getattr, exec of a string, a variable for a command). What code can do is for
// the sandbox to decide, and that does not rely on anything here.
//
// Code is looked at by lexers that know strings, comments and quoting, not by a
// search of its text: what stands in a string is data. They do not parse, so
// what is no valid code is left to the interpreter to complain about. Each takes
// time and memory in proportion to the code.
package check

import (
	"fmt"
	"strings"
)

// Error is what was found, all of it.
type Error struct {
	Language string   // "python" or "shell"
	Found    []string // each a sentence: "Import not allowed: 'os' (line 1)"
}

// shown bounds what an error says.
const shown = 100

func (e *Error) Error() string {
	found, more := e.Found, ""
	if n := len(found) - shown; n > 0 {
		found, more = found[:shown], fmt.Sprintf("and %d more", n)
	}
	if e.Language == "shell" {
		return "Dangerous command blocked: " + strings.Join(add(found, more), "; ")
	}
	return "Dangerous code blocked:\n  - " + strings.Join(add(found, more), "\n  - ")
}

func add(found []string, more string) []string {
	if more == "" {
		return found
	}
	return append(found[:len(found):len(found)], more)
}

// refused is nil when nothing was found.
func refused(language string, found []string) error {
	if len(found) == 0 {
		return nil
	}
	return &Error{language, found}
}
