package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// PythonRules say what Python code is refused for. nil is the default of each; a
// list without elements is one.
type PythonRules struct {
	// Imports are the packages that may be imported, with all that is in them.
	// The default are modules of the standard library that compute, and asyncio:
	// that can start programs, too, but calls of tools at once need it.
	Imports []string
	// Builtins are functions that may not be called by their name.
	Builtins []string
	// OS are attributes of the module os that may not be used, where Imports has
	// that.
	OS []string
}

// DefaultPython returns the rules that nil stands for, to be changed.
func DefaultPython() PythonRules {
	return PythonRules{
		Imports: strings.Fields(`__future__ abc array asyncio base64 bisect calendar cmath collections copy csv dataclasses datetime decimal enum
			fractions functools hashlib heapq hmac io itertools json math numbers operator pprint random re statistics string struct
			textwrap time types typing unicodedata`),
		Builtins: strings.Fields("open exec eval compile __import__ breakpoint exit quit"),
		OS: strings.Fields(`system popen execl execle execlp execlpe execv execve execvp execvpe
			spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp
			kill killpg environ environb getenv getenvb putenv unsetenv`),
	}
}

// Python checks source by the default rules.
func Python(source string) error { return PythonRules{}.Check(source) }

// Check returns an *Error with all that the rules refuse, by line, or nil.
func (r PythonRules) Check(source string) error {
	if len(source) > math.MaxInt32 {
		return &Error{"python", []string{"Source of more than 2 GiB"}}
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

// text is a token's; "" beyond the ends, and for what is no name or operator.
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

// look decides about the token and those after it.
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
		// An attribute, or a definition: not the builtin, and not the module.
	case p.builtins[word] && p.called(i):
		p.refuse(i, "Blocked built-in call: %s()", word)
	case word == "os" && p.text(i+1) == "." && p.is(i+2, name) && p.os[p.text(i+2)]:
		if p.text(i+3) == "(" {
			p.refuse(i, "Blocked call: os.%s()", p.text(i+2))
		} else {
			p.refuse(i, "Blocked attribute access: os.%s", p.text(i+2))
		}
	}
}

// imported reads "a.b as c, d" and looks at each.
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

// from looks at "from a.b import"; "yield from a" and "raise a from b" have
// nothing to do with it.
func (p *python) from(i int) {
	j, top := i+1, ""
	for ; p.text(j) == "." || p.text(j) == "..."; j++ {
		if top = "."; p.text(j+1) == "import" { // of the package that this is in
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

// endsFrom tells whether the import is that of a "from", which has been looked at.
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
		p.refuse(i, "Import not allowed: '%.100s'", module)
	}
}

// called tells whether the name, perhaps in parentheses of its own, is called.
func (p *python) called(i int) bool {
	before, after := i-1, i+1
	for p.text(before) == "(" && p.text(after) == ")" && !p.value(before-1) {
		before, after = before-1, after+1
	}
	return p.text(after) == "("
}

// value tells whether a "(" after that token makes a call.
func (p *python) value(i int) bool {
	if p.is(i, name) {
		_, keyword := slices.BinarySearch(keywords, p.text(i))
		return !keyword
	}
	return p.is(i, str) || p.text(i) == ")" || p.text(i) == "]" || p.text(i) == "}"
}

// keywords are those after which an expression may begin, sorted.
var keywords = strings.Fields("and as assert await case del elif else except for from if import in is lambda not or raise return while with yield")
