package bootstrap

import (
	"embed"
	"strconv"
	"strings"
	"sync"
)

//go:embed python/*.py
var pythonFiles embed.FS

// pythonParts are the parts of the Python client: the core, and what is compiled on
// first use.
var pythonParts = []string{
	"core", "channel", "docs", "fallback", "loops", "namespaces",
	"report", "stateful", "threads", "tools", "values", "wrap",
}

// pythonBoot returns the program for python3 -c: a few lines, with the parts as
// string literals, each of which is a single token to the parser.
var pythonBoot = sync.OnceValue(func() string {
	var parts strings.Builder
	for _, name := range pythonParts {
		parts.WriteString(strconv.Quote(name) + ":" + strconv.QuoteToASCII(pythonFile(name)) + ",")
	}
	return strings.Replace(pythonFile("boot"), "PARTS = {}", "PARTS = {"+parts.String()+"}", 1)
})

// pythonFile returns a part without comments and blank lines, and with one space for
// each level of indentation: each start pays for each byte of the arguments.
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

// Python starts Python code with the python3 in the sandbox's PATH, version 3.8 or
// later, isolated from environment variables and user site packages. args become
// sys.argv[1:], unless the job has arguments. The client needs only the standard
// library, and imports only what the code needs.
func Python(args []string) Launch {
	return Launch{Argv: append([]string{"python3", "-I", "-c", pythonBoot()}, args...), Hello: true}
}
