package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// PythonRules say what Python code may not do. A nil list stands for the default, an
// empty one for no names.
type PythonRules struct {
	// Imports lists the packages that may be imported, including their submodules. The
	// default is the part of the standard library that computes, and asyncio: it can
	// start programs, but concurrent tool calls need it.
	Imports []string
	// Builtins lists functions that may not be called by name.
	Builtins []string
	// OS lists attributes of module os that may not be used. It matters if Imports
	// allows os.
	OS []string
}

// DefaultPython returns a copy of the default rules, to be modified.
func DefaultPython() PythonRules {
	return PythonRules{
		Imports: strings.Fields(`__future__ abc array asyncio base64 bisect calendar cmath collections copy csv
			dataclasses datetime decimal enum fractions functools hashlib heapq hmac io itertools json math numbers
			operator pprint random re statistics string struct textwrap time types typing unicodedata`),
		Builtins: strings.Fields("open exec eval compile __import__ breakpoint exit quit"),
		OS: strings.Fields(`system popen execl execle execlp execlpe execv execve execvp execvpe
			spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp
			kill killpg environ environb getenv getenvb putenv unsetenv`),
	}
}

// Python checks source against the default rules, like PythonRules.Check.
func Python(source string) error { return PythonRules{}.Check(source) }

// Check returns an *Error that lists everything that the rules refuse, in the order of
// lines, or nil.
func (r PythonRules) Check(source string) error {
	if len(source) > math.MaxInt32 {
		return refused("python", []string{"source is longer than 2 GiB"})
	}
	source = strings.TrimPrefix(source, "\ufeff")
	def := DefaultPython()
	p := python{
		source:  source,
		imports: set(r.Imports, def.Imports), builtins: set(r.Builtins, def.Builtins), os: set(r.OS, def.OS),
		tokens: lexPython(source),
	}
	for i := range p.tokens {
		p.look(i)
	}
	return refused("python", p.found)
}

func set(list, def []string) map[string]bool {
	if list == nil {
		list = def
	}
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return m
}

type python struct {
	source                string
	imports, builtins, os map[string]bool
	tokens                []token
	found                 []string
}

// text returns the text of a token, or "" before the first and after the last.
func (p *python) text(i int) string {
	if i < 0 || i >= len(p.tokens) {
		return ""
	}
	return p.source[p.tokens[i].start:p.tokens[i].end]
}

func (p *python) is(i int, k kind) bool { return i >= 0 && i < len(p.tokens) && p.tokens[i].kind == k }

func (p *python) refuse(i int, format string, args ...any) {
	p.found = append(p.found, fmt.Sprintf(format, args...)+fmt.Sprintf(" (line %d)", p.tokens[i].line))
}

// look checks what begins at a token.
func (p *python) look(i int) {
	if !p.is(i, name) {
		return
	}
	switch word := p.text(i); {
	case word == "import":
		if !p.endsFrom(i) {
			p.imported(i + 1)
		}
	case word == "from":
		p.from(i)
	case p.text(i-1) == "." || p.text(i-1) == "def" || p.text(i-1) == "class":
		// An attribute or a definition, not the builtin or module.
	case p.builtins[word] && p.called(i):
		p.refuse(i, "call of %s() is not allowed", word)
	case word == "os" && p.text(i+1) == "." && p.is(i+2, name) && p.os[p.text(i+2)]:
		if p.text(i+3) == "(" {
			p.refuse(i, "call of os.%s() is not allowed", p.text(i+2))
		} else {
			p.refuse(i, "use of os.%s is not allowed", p.text(i+2))
		}
	}
}

// imported checks each module of "a.b as c, d".
func (p *python) imported(i int) {
	for p.is(i, name) {
		p.module(i, p.text(i))
		for i++; p.text(i) == "." && p.is(i+1, name) && p.text(i+1) != "import"; i += 2 {
		}
		if p.text(i) == "as" {
			i += 2
		}
		if p.text(i) != "," {
			return
		}
		i++
	}
}

// from checks the module of "from a.b import". It ignores "yield from a" and
// "raise a from b".
func (p *python) from(i int) {
	j, top := i+1, ""
	for ; p.text(j) == "." || p.text(j) == "..."; j++ {
		if top = "."; p.text(j+1) == "import" { // from the current package
			p.module(i, top)
			return
		}
	}
	if !p.is(j, name) || p.text(j) == "from" {
		return
	}
	top += p.text(j)
	for j++; p.text(j) == "." && p.is(j+1, name) && p.text(j+1) != "from"; j += 2 {
	}
	if p.text(j) == "import" {
		p.module(i, top)
	}
}

// endsFrom reports whether an import belongs to a "from", which has been checked.
func (p *python) endsFrom(i int) bool {
	for i--; p.is(i, name) || p.text(i) == "." || p.text(i) == "..."; i-- {
		if p.text(i) == "from" {
			return true
		}
		if p.text(i) == "import" {
			return false
		}
	}
	return false
}

func (p *python) module(i int, module string) {
	if !p.imports[module] {
		p.refuse(i, "import of %.100s is not allowed", module)
	}
}

// called reports whether a name, possibly in parentheses, is called.
func (p *python) called(i int) bool {
	before, after := i-1, i+1
	for p.text(before) == "(" && p.text(after) == ")" && !p.value(before-1) {
		before, after = before-1, after+1
	}
	return p.text(after) == "("
}

// value reports whether a "(" after a token makes a call.
func (p *python) value(i int) bool {
	if p.is(i, name) {
		_, keyword := slices.BinarySearch(keywords, p.text(i))
		return !keyword
	}
	return p.is(i, str) || p.text(i) == ")" || p.text(i) == "]" || p.text(i) == "}"
}

// keywords lists the keywords that an expression may follow, sorted.
var keywords = strings.Fields("and as assert await case del elif else except for from if import in is lambda not or " +
	"raise return while with yield")
