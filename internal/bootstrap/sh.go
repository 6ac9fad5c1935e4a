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

// Script is a shell script that may call tools. The zero Script does nothing.
type Script struct {
	Shell  string   // "sh", "bash", a path, or words: "busybox sh"; "" means "sh"
	Source string   // the script
	Args   []string // "$@"
	// Vars are variables of the script, not exported. A string becomes its text, any
	// other value stays JSON. Names that are invalid in a shell and zero bytes are
	// dropped.
	Vars      map[string]json.RawMessage
	Tools     []Tool // that become functions
	Namespace string // the run is pinned to it; functions for its tools exist without the prefix as well
	// Dir holds Launch.Files as "4", "5", …; "" means /proc/self/fd, where Linux shows
	// descriptors. A system without that needs a directory for this run alone, in which
	// the guest may create its lock, "8". The caller removes it after the last process
	// that may call tools.
	Dir string
}

// Shell starts a script in a POSIX shell: dash, bash or busybox sh. The exit status and
// the line numbers in messages are those of the script.
//
// Each tool becomes a function, with "_" for "-" and "." in its name: db_query for tool
// query in namespace db. There is none if the name is taken, or a word that the shell
// does not look up (if, set, exit, command). "tool NAME" calls any tool by its exact
// name; "command ls" runs the program if a tool is named ls.
//
//	add 1 2                     the parameters in order
//	greet name=Bob loud=true    by name; text where the schema has a string, else
//	                            JSON where it looks like that, else text
//	put data:='[1, 2]'          JSON in any case
//	put '{"data": [1, 2]}'      all of them
//	put -                       all of them, from standard input
//
// An argument of the form NAME=… is always by name. The value is printed: strings as
// text, bytes decoded if there is a base64 program, other values as JSON. A failure
// prints "NAME: TYPE: message" on standard error; the status is 2 if the caller is to
// blame, otherwise 1. "result JSON" returns a value from the run, "result -t TEXT" a
// string.
//
// One request is in flight at a time: background jobs wait for each other. A call after
// the host has hung up ends the script with SIGPIPE. A shell cannot set close-on-exec,
// so all children hold the channel; a script among them can call tools after
// . "$TEGMEN_TOOLS". Descriptors 3 and 8 and names that begin with _tegmen are reserved.
// A shell reads byte by byte: a value of 1 MB takes half a second.
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

// shText returns the text of the file that TEGMEN_TOOLS names.
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
		if short := s.shortName(t); short != t.Name {
			names += " | " + shQuote(short)
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

// shortName returns the name of a tool without the namespace that the run is pinned to.
func (s Script) shortName(t Tool) string {
	if s.Namespace == "" {
		return t.Name
	}
	return strings.TrimPrefix(t.Name, s.Namespace+".")
}

// shNames maps names of functions to names of tools. Exact names win over changed ones,
// and names without a namespace over those with one.
func shNames(s Script) map[string]string {
	names := map[string]string{}
	add := func(name, tool string) {
		if shName(name) && names[name] == "" {
			names[name] = tool
		}
	}
	exact, dashes, dots := strings.NewReplacer(), strings.NewReplacer("-", "_"), strings.NewReplacer("-", "_", ".", "_")
	for _, change := range []*strings.Replacer{exact, dashes, dots} {
		for _, t := range s.Tools {
			add(change.Replace(s.shortName(t)), t.Name)
			add(change.Replace(t.Name), t.Name)
		}
	}
	return names
}

// shTaken are words that cannot be names of functions: keywords, special builtins, which
// the shell finds first, and what the functions use themselves.
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

// shParameters returns the parameters in the form of _tegmen_call. Parameters after one
// whose name is not a shell word can only be passed as JSON.
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
