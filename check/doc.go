// Package check examines code before it runs and refuses what looks accidental or
// dangerous: an import that a snippet should not need, open(), rm -rf /.
//
// It is advice, not a security boundary. It saves a run, and its error tells the author
// of the code, often a model, what to avoid. Evading it is easy (getattr, exec of a
// string, a variable for a command). The sandbox limits what code can do and does not
// rely on this package.
//
// Lexers that know strings, comments and quoting examine the code: text in a string is
// data. They do not parse, and leave invalid code to the interpreter. They take time and
// memory in proportion to the length of the code.
package check

import (
	"fmt"
	"strings"
)

// Error reports everything that was found in some code. Match it with errors.As.
type Error struct {
	Language string   // "python" or "shell"
	Found    []string // one phrase for each finding: "import of os is not allowed (line 1)"
}

// shown bounds the number of findings in the text of an error.
const shown = 100

// Error lists at most 100 findings, separated by semicolons.
func (e *Error) Error() string {
	found, more := e.Found, ""
	if n := len(found) - shown; n > 0 {
		found, more = found[:shown], fmt.Sprintf("; and %d more", n)
	}
	return fmt.Sprintf("%s code refused: %s%s", e.Language, strings.Join(found, "; "), more)
}

// refused returns an Error, or nil if nothing was found.
func refused(language string, found []string) error {
	if len(found) == 0 {
		return nil
	}
	return &Error{Language: language, Found: found}
}
