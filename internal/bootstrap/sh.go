package bootstrap

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/internal/toolcall"
)

//go:embed sh/functions.sh
var shFunctions string

//go:embed sh/channel.sh
var shChannel string

// Script is a shell script that may call tools. The zero value does nothing.
type Script struct {
	Shell  string // "sh", "bash", a path, or words: "busybox sh"; "" is "sh"
	Source string
	Args   []string // "$@"
	// Vars are variables of the script, not exported: strings are their text, and
	// all else is JSON. Names that the shell has no variables for are left out,
	// and so are zero bytes.
	Vars      map[string]json.RawMessage
	Tools     []Tool
	Namespace string // the run is pinned to it: its tools have functions by their bare names, too
	// Dir has the Launch's Files, as "4", "5", …; "" is /proc/self/fd, where Linux
	// shows descriptors. A system without that needs a directory made for this run
	// alone, in which the guest also may make "8", its lock: who has made it removes
	// it, after the last process that may call tools.
	Dir string
}

// Shell starts a script in a POSIX shell: dash, bash, busybox's. Its exit status
// is the script's own, and line numbers in messages are the script's.
//
// Each tool is a function, with "_" for "-" and "." in its name: db_query for
// the tool query of the namespace db. One that would be called like another, or
// like a word that the shell does not look up (if, set, exit, command), has none:
// "tool NAME" calls any tool by its exact name. "command ls" runs the program
// when a tool has its name.
//
//	add 1 2                     the parameters in order
//	greet name=Bob loud=true    by name; text where the schema has a string, else
//	                            JSON where it looks like that, else text
//	put data:='[1, 2]'          JSON in any case
//	put '{"data": [1, 2]}'      all of them
//	put -                       all of them, from standard input
//
// An argument that looks like NAME=… is always by name. The value is printed,
// text as text, base64 decoded where there is a base64 program, all else as JSON.
// A failure prints "NAME: TYPE: message" on standard error; the status is 2 where
// the caller is to blame, and 1 otherwise. "result JSON" gives the run its value,
// "result -t TEXT" one that is text.
//
// One request is under way at a time: background jobs wait for each other. A
// call after the host has hung up ends the script by SIGPIPE. A shell cannot keep
// descriptors from its children, so they all hold the channel; a script among
// them calls tools after . "$TEGMEN_TOOLS". Descriptors 3 and 8, and names that
// begin with _tegmen, are taken. A shell reads bytes one by one: a value of 1 MB
// takes it half a second.
func Shell(s Script) Launch {
	argv := strings.Fields(s.Shell)
	if len(argv) == 0 {
		argv = []string{"sh"}
	}
	dir := s.Dir
	if dir == "" {
		dir = "/proc/self/fd"
	}
	prelude := `. "$TEGMEN_TOOLS"; `
	files := []string{shText(s), s.Source}
	if vars := shVars(s.Vars); vars != "" {
		prelude += ". " + shQuote(dir+"/6") + "; exec 6<&-; "
		files = append(files, vars)
	}
	return Launch{
		Argv:  append(append(argv, "-c", prelude+". "+shQuote(dir+"/5"), argv[len(argv)-1]), s.Args...),
		Env:   []string{"TEGMEN_TOOLS=" + dir + "/4"},
		Files: files,
	}
}

// shText is what TEGMEN_TOOLS names.
func shText(s Script) string {
	var b strings.Builder
	b.WriteString(shFunctions + shChannel)

	b.WriteString("_tegmen_control() {\n\tcase $_tegmen_rest in\n")
	for c := 1; c < 32; c++ {
		fmt.Fprintf(&b, "\t'%c'*) _tegmen_json=$_tegmen_json\\\\u%04x ;;\n", c, c)
	}
	b.WriteString("\t*) _tegmen_json=$_tegmen_json${_tegmen_rest%\"${_tegmen_rest#?}\"} ;;\n\tesac\n}\n")

	b.WriteString("_tegmen_tool() {\n\tcase $1 in\n")
	for _, t := range s.Tools {
		names := shQuote(t.Name)
		if bare := s.bare(t); bare != t.Name {
			names += " | " + shQuote(bare)
		}
		fmt.Fprintf(&b, "\t%s) shift; _tegmen_call %s %s %s %s \"$@\" ;;\n", names,
			shQuote(t.Name), shQuote(toolcall.Members(t.Name)), shQuote(t.shParameters()), shQuote(t.shOutput()))
	}
	b.WriteString("\t*) command printf '%s: not_found: no such tool\\n' \"$1\" >&2; return 2 ;;\n\tesac\n}\n")

	functions := shNames(s)
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		fmt.Fprintf(&b, "%s() { tool %s \"$@\"; }\n", name, shQuote(functions[name]))
	}
	b.WriteString("_tegmen_hello\n")
	return b.String()
}

// bare is what a tool may be called besides its exact name: that without the
// namespace which the run is pinned to.
func (s Script) bare(t Tool) string {
	if s.Namespace == "" {
		return t.Name
	}
	return strings.TrimPrefix(t.Name, s.Namespace+".")
}

// shNames maps the names of functions to those of tools. An exact name comes
// before one that has been changed, that of a namespace last.
func shNames(s Script) map[string]string {
	names := map[string]string{}
	add := func(name, tool string) {
		if shName(name) && names[name] == "" {
			names[name] = tool
		}
	}
	same := strings.NewReplacer()
	for _, change := range []*strings.Replacer{same, strings.NewReplacer("-", "_"), strings.NewReplacer("-", "_", ".", "_")} {
		for _, t := range s.Tools {
			add(change.Replace(s.bare(t)), t.Name)
			add(change.Replace(t.Name), t.Name)
		}
	}
	return names
}

// shTaken are the words that are no names of functions: those of the grammar,
// special builtins, which are found first, and what the functions themselves use.
const shTaken = ` if then else elif fi do done case esac while until for in function select time coproc ` +
	`break continue eval exec exit export readonly return set shift times trap unset source ` +
	`command local declare typeset builtin tool result `

func shName(s string) bool { return shIdentifier(s) && !strings.Contains(shTaken, " "+s+" ") }

func shIdentifier(s string) bool { return Identifier(s) && !strings.HasPrefix(s, "_tegmen") }

const shLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

func shQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func shVars(vars map[string]json.RawMessage) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !shIdentifier(name) {
			continue
		}
		text := string(vars[name])
		var s string
		if strings.HasPrefix(strings.TrimSpace(text), `"`) && json.Unmarshal(vars[name], &s) == nil {
			text = s
		}
		fmt.Fprintf(&b, "%s=%s\n", name, shQuote(strings.ReplaceAll(text, "\x00", "")))
	}
	return b.String()
}

// shParameters has the parameters as _tegmen_call wants them. Those after one
// with a name that is no word for a shell have to be given as JSON.
func (t Tool) shParameters() string {
	var b strings.Builder
	b.WriteByte(' ')
	for _, p := range toolcall.Parameters(t.Schema) {
		if p.Name == "" || strings.Trim(p.Name, shLetters+".-") != "" {
			break
		}
		kind := "j:"
		if toolcall.IsText(p.Schema) {
			kind = "s:"
		}
		b.WriteString(kind + p.Name + " ")
	}
	return b.String()
}

func (t Tool) shOutput() string {
	if toolcall.IsBytes(t.Output) {
		return "base64"
	}
	return ""
}
