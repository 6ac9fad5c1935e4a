package check

import (
	"path"
	"slices"
	"strings"
)

// simple is a simple command of a script.
type simple struct {
	words     []string // without quotes; expansions as written
	redirects []string // the files that its output goes to
	fed       bool     // its input is a download by curl or wget
}

// splitter splits a script into simple commands. Substitutions become separate commands
// before the enclosing one, which a stack keeps.
type splitter struct {
	s    string
	i    int
	out  []simple
	now  *context
	open []*context // the contexts that enclose now

	heredocs []string // end markers of the here-documents that begin after this line
}

// context is a command that is being read.
type context struct {
	cmd      simple
	word     strings.Builder
	inWord   bool
	redirect bool // the next word is the file that output goes to
	quoted   bool // inside double quotes
	close    byte // the end: ')', '`' or, for the script itself, 0
	shell    bool // a subshell, whose input and output are those of the pipeline
	fetches  bool // curl or wget is among its commands
}

func splitShell(s string) []simple {
	p := &splitter{s: s, now: &context{}}
	for p.i < len(p.s) {
		p.step()
	}
	for p.endCommand(false); len(p.open) > 0; p.endCommand(false) {
		p.pop()
	}
	return p.out
}

func (p *splitter) step() {
	c, n := p.s[p.i], p.now
	switch {
	case c == '\\':
		p.i++
		if p.i < len(p.s) && p.s[p.i] != '\n' {
			p.add(p.s[p.i])
		}
		p.i++
	case c == '$' && strings.HasPrefix(p.s[p.i:], "$("):
		p.i += 2
		p.push(')')
	case c == '`':
		p.i++
		if n.close == '`' {
			p.endCommand(false)
			p.pop()
		} else {
			p.push('`')
		}
	case c == '"':
		p.i++
		n.quoted, n.inWord = !n.quoted, true
	case n.quoted:
		p.add(c)
		p.i++
	case c == '\'':
		end := strings.IndexByte(p.s[p.i+1:], '\'')
		if end < 0 {
			end = len(p.s) - p.i - 1
		}
		n.word.WriteString(p.s[p.i+1 : p.i+1+end])
		n.inWord = true
		p.i = min(p.i+end+2, len(p.s))
	case c == '#' && !n.inWord:
		for p.i < len(p.s) && p.s[p.i] != '\n' {
			p.i++
		}
	default:
		p.operator(c)
	}
}

// operator handles operators, white space and ordinary characters.
func (p *splitter) operator(c byte) {
	p.i++
	switch c {
	case ' ', '\t', '\r':
		p.endWord()
	case '\n':
		p.endCommand(false)
		p.skipHeredocs()
	case ';':
		p.endCommand(false)
	case '&':
		if strings.HasPrefix(p.s[p.i:], ">") || p.now.redirect && !p.now.inWord { // &>file, >&2
			return
		}
		p.endCommand(false)
	case '|':
		or := strings.HasPrefix(p.s[p.i:], "|")
		if or || strings.HasPrefix(p.s[p.i:], "&") { // a || b, a |& b
			p.i++
		}
		p.endCommand(!or)
	case '(':
		p.endWord()
		fed := p.now.cmd.fed
		p.push(')')
		p.now.shell, p.now.cmd.fed = true, fed
	case ')':
		p.endCommand(false)
		if p.now.close == ')' {
			p.pop()
		}
	case '>':
		p.endWord()
		p.now.redirect = true
		if strings.HasPrefix(p.s[p.i:], ">") || strings.HasPrefix(p.s[p.i:], "|") {
			p.i++
		}
	case '<':
		p.endWord()
		p.heredoc()
	default:
		p.add(c)
	}
}

func (p *splitter) add(c byte) {
	p.now.word.WriteByte(c)
	p.now.inWord = true
}

func (p *splitter) endWord() {
	n := p.now
	if !n.inWord {
		return
	}
	word := n.word.String()
	if n.redirect {
		n.cmd.redirects = append(n.cmd.redirects, word)
	} else {
		n.cmd.words = append(n.cmd.words, word)
	}
	n.word.Reset()
	n.inWord, n.redirect = false, false
	if word == "{" { // begins a group or a function's body
		p.endCommand(false)
	}
}

// endCommand ends a command; pipe is set if its output goes to the next one.
func (p *splitter) endCommand(pipe bool) {
	p.endWord()
	n := p.now
	fed := n.cmd.fed
	if len(n.cmd.words) > 0 || len(n.cmd.redirects) > 0 {
		p.out = append(p.out, n.cmd)
		n.fetches = n.fetches || slices.ContainsFunc(n.cmd.words, isFetcher)
		fed = pipe && (fed || n.fetches)
		n.fetches = n.fetches && (pipe || n.shell)
	} // else the line ends after "a |", and the pipeline continues
	n.cmd = simple{fed: fed}
	n.redirect = false
}

func isFetcher(word string) bool {
	name := path.Base(word)
	return name == "curl" || name == "wget"
}

func (p *splitter) push(end byte) {
	p.open = append(p.open, p.now)
	p.now = &context{close: end}
}

// pop returns to the enclosing command, in which the substitution is some word.
func (p *splitter) pop() {
	inner := p.now
	p.now = p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	p.now.inWord = true
	p.now.fetches = p.now.fetches || inner.shell && inner.fetches
}

// heredoc reads what follows a "<". After "<<word" the text from the next line on is
// data.
func (p *splitter) heredoc() {
	rest := p.s[p.i:]
	if strings.HasPrefix(rest, "<<") { // "<<<word"
		p.i += 2
		return
	}
	if !strings.HasPrefix(rest, "<") {
		return
	}
	rest = strings.TrimLeft(strings.TrimPrefix(rest[1:], "-"), " \t")
	end := strings.IndexAny(rest, " \t\n;&|<>()")
	if end < 0 {
		end = len(rest)
	}
	p.i = len(p.s) - len(rest) + end
	p.heredocs = append(p.heredocs, strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(rest[:end]))
}

func (p *splitter) skipHeredocs() {
	for _, word := range p.heredocs {
		for p.i < len(p.s) {
			line, _, _ := strings.Cut(p.s[p.i:], "\n")
			p.i = min(p.i+len(line)+1, len(p.s))
			if strings.TrimLeft(line, "\t") == word {
				break
			}
		}
	}
	p.heredocs = nil
}
