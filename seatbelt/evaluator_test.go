package seatbelt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What follows reads a profile as Seatbelt does, as far as profiles here need
// it, and decides. Words that it does not know are errors: a word that is passed
// over could be one that a macOS refuses.

// node is a list, a string or a word.
type node struct {
	list []node
	text string
	kind byte // '(', '"' or 'w'
}

// readAll reads every expression of a text.
func readAll(text string) ([]node, error) {
	var out []node
	for {
		text = skip(text)
		if text == "" {
			return out, nil
		}
		n, rest, err := readOne(text)
		if err != nil {
			return nil, err
		}
		out, text = append(out, n), rest
	}
}

func skip(s string) string {
	for {
		s = strings.TrimLeft(s, " \n")
		if !strings.HasPrefix(s, ";") {
			return s
		}
		_, s, _ = strings.Cut(s, "\n")
	}
}

func readOne(s string) (node, string, error) {
	switch s[0] {
	case '(':
		n := node{kind: '('}
		for s = skip(s[1:]); ; s = skip(s) {
			if s == "" {
				return n, "", fmt.Errorf("a list does not end")
			}
			if s[0] == ')' {
				return n, s[1:], nil
			}
			sub, rest, err := readOne(s)
			if err != nil {
				return n, "", err
			}
			n.list, s = append(n.list, sub), rest
		}
	case '"':
		return readString(s[1:])
	}
	end := strings.IndexAny(s+" ", " \n()\";")
	word := s[:end]
	if !regexp.MustCompile(`^[a-z0-9*-]+$`).MatchString(word) {
		return node{}, "", fmt.Errorf("not a word: %.20q", s)
	}
	return node{kind: 'w', text: word}, s[end:], nil
}

// readString has the escapes of TinyScheme that can be relied on.
func readString(s string) (node, string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return node{kind: '"', text: b.String()}, s[i+1:], nil
		case c < ' ' || c > '~':
			return node{}, "", fmt.Errorf("a byte %#x in a string", c)
		case c != '\\':
			b.WriteByte(c)
		case i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		default:
			var c byte
			if _, err := fmt.Sscanf(s[i:min(i+4, len(s))], `\x%02x`, &c); err != nil {
				return node{}, "", fmt.Errorf("an escape that is none: %.4q", s[i:])
			}
			b.WriteByte(c)
			i += 3
		}
	}
	return node{}, "", fmt.Errorf("a string does not end")
}

// operations are those that can be asked about; profiles may name them, or families
// of them, unless the comment says otherwise.
var operations = strings.Fields(`
	file-read-data file-read-metadata file-read-xattr
	file-write-create file-write-data file-write-flags file-write-mode file-write-owner file-write-setugid file-write-times
	file-write-unlink file-write-xattr
	file-chroot file-ioctl file-issue-extension file-map-executable file-mknod file-mount file-revoke file-search file-unmount
	file-link file-clone file-test-existence
	process-exec process-exec-interpreter process-fork process-info-pidinfo process-info-setcontrol process-codesigning-status-get
	forbidden-exec-sugid signal pseudo-tty
	mach-lookup mach-register mach-priv-task-port mach-task-name
	sysctl-read sysctl-write
	network-outbound network-inbound network-bind system-socket
	ipc-posix-sem ipc-posix-shm-read-data ipc-posix-shm-write-create ipc-posix-shm-write-data ipc-posix-shm-write-unlink ipc-sysv-shm
	iokit-open appleevent-send lsopen user-preference-read user-preference-write distributed-notification-post job-creation
	nvram-get system-privilege`)

// unsure are operations that some macOS from 12 on may not know, or that are not
// to be allowed by name; they are denied by default.
var unsure = strings.Fields("file-test-existence file-link file-clone forbidden-exec-sugid")

// covers tells whether an operation of a rule, such as file-read*, is about op.
func covers(named, op string) bool {
	family, ok := strings.CutSuffix(named, "*")
	return named == op || ok && strings.HasPrefix(op, strings.TrimSuffix(family, "-")+"-") || ok && op == family
}

// matcher tells whether a filter matches.
type matcher func(a ask) bool

// ask is a question: an operation and what it is about. of says what kind of
// thing arg is, by the operation; extensions are what the process holds for it.
type ask struct {
	op, arg    string
	extensions []string
}

type loaded struct {
	allow    bool
	ops      []string
	matchers []matcher // none: everything
}

type evaluator struct {
	rules  []loaded
	params map[string]string
	used   map[string]bool
}

// load reads a profile with its parameters.
func load(text string, params []string) (*evaluator, error) {
	e := &evaluator{params: make(map[string]string), used: make(map[string]bool)}
	for _, p := range params {
		k, v, ok := strings.Cut(p, "=")
		if _, twice := e.params[k]; !ok || twice {
			return nil, fmt.Errorf("parameter %q", p)
		}
		e.params[k] = v
	}
	nodes, err := readAll(text)
	if err != nil {
		return nil, err
	}
	if len(nodes) < 2 || words(nodes[0]) != "version 1" || words(nodes[1]) != "deny default" {
		return nil, fmt.Errorf("does not begin with (version 1)(deny default)")
	}
	for _, n := range nodes[2:] {
		r, err := e.rule(n)
		if err != nil {
			return nil, err
		}
		e.rules = append(e.rules, r)
	}
	for k := range e.params {
		if !e.used[k] {
			return nil, fmt.Errorf("parameter %s is not used", k)
		}
	}
	return e, nil
}

// words are the words of a list that has nothing else.
func words(n node) string {
	var ws []string
	for _, w := range n.list {
		if w.kind != 'w' {
			return ""
		}
		ws = append(ws, w.text)
	}
	return strings.Join(ws, " ")
}

func (e *evaluator) rule(n node) (loaded, error) {
	if n.kind != '(' || len(n.list) < 2 || n.list[0].kind != 'w' || n.list[0].text != "allow" && n.list[0].text != "deny" {
		return loaded{}, fmt.Errorf("not a rule: %v", n)
	}
	r := loaded{allow: n.list[0].text == "allow"}
	rest := n.list[1:]
	for ; len(rest) > 0 && rest[0].kind == 'w'; rest = rest[1:] {
		op := rest[0].text
		if !slices.ContainsFunc(operations, func(o string) bool { return covers(op, o) }) || slices.Contains(unsure, op) {
			return r, fmt.Errorf("operation %q", op)
		}
		r.ops = append(r.ops, op)
	}
	if len(r.ops) == 0 {
		return r, fmt.Errorf("a rule without operation")
	}
	for _, f := range rest {
		m, err := e.filter(r.ops, f)
		if err != nil {
			return r, err
		}
		r.matchers = append(r.matchers, m)
	}
	return r, nil
}

// kinds of things that filters are for, by how the operations begin.
var filterKinds = map[string][]string{
	"literal": {"file", "process-exec"}, "subpath": {"file", "process-exec"}, "regex": {"file", "process-exec"}, "extension": {"file"},
	"target": {"signal", "process-info"}, "global-name": {"mach-lookup"},
	"sysctl-name": {"sysctl"}, "sysctl-name-prefix": {"sysctl"}, "remote": {"network-outbound"}, "ipc-posix-name-prefix": {"ipc-posix"},
}

func (e *evaluator) filter(ops []string, n node) (matcher, error) {
	if n.kind != '(' || len(n.list) < 2 || n.list[0].kind != 'w' {
		return nil, fmt.Errorf("not a filter: %v", n)
	}
	word := n.list[0].text
	if word == "require-all" {
		var all []matcher
		for _, sub := range n.list[1:] {
			m, err := e.filter(ops, sub)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
		return func(a ask) bool { return !slices.ContainsFunc(all, func(m matcher) bool { return !m(a) }) }, nil
	}
	for _, op := range ops {
		if !slices.ContainsFunc(filterKinds[word], func(k string) bool { return strings.HasPrefix(op, k) }) {
			return nil, fmt.Errorf("filter %q for %s", word, op)
		}
	}
	switch {
	case word == "remote" && len(n.list) == 3 && n.list[1].text == "tcp" && regexp.MustCompile(`^localhost:[0-9]+$`).MatchString(n.list[2].text):
		return func(a ask) bool { return a.arg == "tcp "+n.list[2].text }, nil
	case len(n.list) != 2:
		return nil, fmt.Errorf("filter %q with %d words", word, len(n.list))
	case word == "target" && slices.Contains([]string{"self", "same-sandbox"}, n.list[1].text):
		return func(a ask) bool { return a.arg == n.list[1].text || a.arg == "self" }, nil
	}
	arg, err := e.value(n.list[1])
	if err != nil {
		return nil, err
	}
	switch word {
	case "literal", "global-name", "sysctl-name":
		return func(a ask) bool { return a.arg == arg }, nil
	case "subpath":
		return func(a ask) bool { return a.arg == arg || strings.HasPrefix(a.arg, arg+"/") }, nil
	case "sysctl-name-prefix", "ipc-posix-name-prefix":
		return func(a ask) bool { return strings.HasPrefix(a.arg, arg) }, nil
	case "extension":
		return func(a ask) bool { return slices.Contains(a.extensions, arg) }, nil
	case "regex":
		re, err := regexp.Compile(arg)
		return func(a ask) bool { return re.MatchString(a.arg) }, err
	}
	return nil, fmt.Errorf("filter %q", word)
}

func (e *evaluator) value(n node) (string, error) {
	switch {
	case n.kind == '"':
		return n.text, nil
	case n.kind == '(' && len(n.list) == 2 && n.list[0].text == "param" && n.list[1].kind == '"':
		v, ok := e.params[n.list[1].text]
		if !ok {
			return "", fmt.Errorf("no parameter %q", n.list[1].text)
		}
		e.used[n.list[1].text] = true
		return v, nil
	}
	return "", fmt.Errorf("not a string: %v", n)
}

// decide is the answer by both readings: the last rule that matches counts; and
// the last of those that name the operation itself, if there is one.
func (e *evaluator) decide(a ask) (last, exact bool, err error) {
	if !slices.Contains(operations, a.op) {
		return false, false, fmt.Errorf("nothing asks about %q", a.op)
	}
	named := false
	for _, r := range e.rules {
		if !slices.ContainsFunc(r.ops, func(op string) bool { return covers(op, a.op) }) ||
			len(r.matchers) > 0 && !slices.ContainsFunc(r.matchers, func(m matcher) bool { return m(a) }) {
			continue
		}
		last = r.allow
		if itself := slices.Contains(r.ops, a.op); itself || !named {
			exact, named = r.allow, named || itself
		}
	}
	return last, exact, nil
}
