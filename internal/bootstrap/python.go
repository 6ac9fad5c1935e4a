package bootstrap

import (
	"embed"
	"strconv"
	"strings"
	"sync"
)

//go:embed python/*.py
var pythonFiles embed.FS

// pythonParts are the pieces of the Python guest: the core, and what is compiled
// when a program first wants it.
var pythonParts = []string{
	"core", "channel", "docs", "fallback", "loops", "namespaces", "report", "stateful", "threads", "tools", "values", "wrap"}

// pythonBoot returns the program for python3 -c: a few lines, with the parts as
// string literals, each of which is a single token to the parser.
var pythonBoot = sync.OnceValue(func() string {
	var parts strings.Builder
	for _, name := range pythonParts {
		parts.WriteString(strconv.Quote(name) + ":" + strconv.QuoteToASCII(pythonFile(name)) + ",")
	}
	return strings.Replace(pythonFile("boot"), "PARTS = {}", "PARTS = {"+parts.String()+"}", 1)
})

// pythonFile is a piece without what an interpreter would skip, as each start
// pays for each byte of its arguments.
func pythonFile(name string) string {
	b, err := pythonFiles.ReadFile("python/" + name + ".py")
	if err != nil {
		panic(err) // it is embedded
	}
	var short strings.Builder
	for line := range strings.Lines(string(b)) {
		text := strings.TrimLeft(line, " ")
		if text == "\n" || strings.HasPrefix(text, "#") {
			continue
		}
		short.WriteString(strings.Repeat(" ", (len(line)-len(text))/4) + text)
	}
	return short.String()
}

// Python is how Python code is started: by the python3 in PATH, of version 3.8
// or later, isolated from variables and the user's own packages, with args as
// the code's sys.argv[1:] unless its job has some. It needs only Python's
// standard library, and of that imports what code wants and no more.
func Python(args []string) Launch {
	return Launch{Argv: append([]string{"python3", "-I", "-c", pythonBoot()}, args...), Hello: true}
}
