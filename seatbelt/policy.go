package seatbelt

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// builder collects the parameters that the rules of a Config name.
type builder struct {
	config Config
	params []string
}

// The operations of reading a program, and all that can be done with one.
const (
	read = "file-read*"
	meta = "file-read-metadata"
	mapx = "file-map-executable" // dyld's mmap, which is asked about besides reading
	exec = "process-exec*"       // and the interpreter of a script
)

// rules are the profile in order: the last that matches counts.
func (b *builder) rules() []rule {
	c := b.config
	own := append(b.paths("READ", c.Read), b.paths("WRITE", c.Write)...)
	starts := append(b.values("literal", "LAUNCHER", c.Launcher), b.values("literal", "PROGRAM", program(c))...)
	rules := slices.Concat(processes(), b.reading(own, starts), devices(c), system())
	if len(c.Write) > 0 {
		writes := own[len(c.Read):]
		rules = append(rules,
			rule{"What can be written to.", true, []string{"file-write*"}, writes},
			rule{"A set-user-ID program left behind would let others act as this user.", false, []string{"file-write-setugid"}, nil})
	}
	if len(c.Ports) > 0 {
		ports := slices.Compact(slices.Sorted(slices.Values(c.Ports)))
		var remote []filter
		for _, port := range ports {
			remote = append(remote, filter{word: "remote tcp", arg: "localhost:" + strconv.Itoa(port)})
		}
		rules = append(rules, rule{"What can be connected to.", true, []string{"network-outbound"}, remote})
	}
	return append(rules, b.denials()...)
}

func program(c Config) []string {
	if c.Program == "" {
		return nil
	}
	return []string{c.Program}
}

func processes() []rule {
	return []rule{
		{"Children are in the same sandbox.", true, []string{"process-fork"}, nil},
		{"A process can look at itself,", true, []string{"process-info*"}, []filter{{word: "target self"}}},
		{"and signal those of its sandbox.", true, []string{"signal"}, []filter{{word: "target same-sandbox"}}},
	}
}

// reading is also executing, since whoever can read a program can load it.
func (b *builder) reading(own, starts []filter) []rule {
	c := b.config
	mine := slices.Concat(own, starts)
	runs := starts
	if c.Program == "" {
		runs = mine
	}
	var rules []rule
	if c.ReadAll {
		ops := []string{read, mapx}
		if c.Program == "" {
			ops = append(ops, exec)
		}
		rules = append(rules,
			rule{"Everything can be read.", true, ops, nil},
			rule{"Except terminals and disks, and the second names of everything, by which it would not be hidden: backups have them, too.", false,
				[]string{read, mapx, exec}, each("subpath", "/dev", "/System/Volumes/Data", "/Volumes")})
	} else {
		trees := each("subpath", systemTrees()...)
		rules = append(rules,
			rule{"The system's programs and libraries.", true, []string{read, mapx}, trees},
			rule{"What they ask at start.", true, []string{read}, append(each("subpath", systemData()...), each("literal", systemFiles()...)...)})
		if c.Program == "" {
			rules = append(rules, rule{"They can be executed.", true, []string{exec}, trees})
		}
		rules = append(rules, rule{"The way to what can be read, for realpath and getcwd; not what else is there.", true, []string{meta}, b.above()})
	}
	if len(mine) > 0 {
		rules = append(rules, rule{"What the sandbox was given.", true, []string{read, mapx}, mine})
	}
	if len(runs) > 0 {
		rules = append(rules, rule{"This can be executed.", true, []string{exec}, runs})
	}
	return rules
}

// above are the directories above everything that can be read.
func (b *builder) above() []filter {
	c := b.config
	system := ancestors(slices.Concat(systemTrees(), systemData(), systemFiles(), []string{"/dev/null"}))
	names := slices.Concat(c.Launcher, program(c))
	for _, p := range slices.Concat(c.Read, c.Write) {
		names = append(names, p.Name)
	}
	own := slices.DeleteFunc(ancestors(names), func(name string) bool { return slices.Contains(system, name) })
	return append(each("literal", append(systemLinks(), system...)...), b.values("literal", "ABOVE", own)...)
}

// ancestors are the directories above names but "/", sorted.
func ancestors(names []string) []string {
	var dirs []string
	for _, name := range names {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// ttys are the terminals; those that were made within the sandbox have the
// extension.
const ttys = "^/dev/ttys[0-9]+$"

func devices(c Config) []rule {
	made := []filter{{word: "require-all", sub: []filter{{word: "regex", arg: ttys}, {word: "extension", arg: "com.apple.sandbox.pty"}}}}
	pty := []string{read, "file-write-data", "file-ioctl"}
	rules := []rule{
		{"Devices that hold nothing. Each program opens dtracehelper; the ioctl by which it would reach DTrace is refused.", true,
			[]string{read}, each("literal", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper", "/dev/autofs_nowait")},
		{"What a program has open already, by number,", true,
			[]string{read, "file-write-data"}, each("subpath", "/dev/fd")},
		{"and the names that lead there.", true, []string{meta}, each("literal", "/dev", "/dev/stdin", "/dev/stdout", "/dev/stderr")},
		{"Writing to nowhere.", true, []string{"file-write-data"}, each("literal", "/dev/null", "/dev/zero")},
		{"Terminals can be made, as script and tmux do,", true, []string{"pseudo-tty"}, nil},
		{"by opening this,", true, pty, each("literal", "/dev/ptmx")},
		{"and those that were made can be used. The user's cannot: it would read what is typed.", true, pty, made},
	}
	if c.Terminal {
		rules = append(rules,
			rule{"The terminal that the sandbox has.", true, pty, each("literal", "/dev/tty")},
			rule{"Modes and size of those that are open. None can be opened by its name.", true, []string{meta, "file-ioctl"}, each("regex", ttys)})
	}
	return rules
}

func system() []rule {
	return []rule{
		{"Services, each of which is a program outside.", true, []string{"mach-lookup"}, each("global-name", services()...)},
		{"What kind of machine this is.", true, []string{"sysctl-read"}, sysctls()},
		{"Locks of Python's multiprocessing.", true, []string{"ipc-posix-sem"}, each("ipc-posix-name-prefix", "/mp-")},
		{"And its shared memory.", true, []string{"ipc-posix-shm*"}, each("ipc-posix-name-prefix", "/psm_")},
	}
}

// denials come after all that is allowed.
func (b *builder) denials() []rule {
	c := b.config
	keep := slices.Concat(c.Keep, slices.DeleteFunc(slices.Concat(c.Launcher, program(c)), func(name string) bool { return b.root(name) == "" }))
	var rules []rule
	if len(keep) > 0 {
		rules = append(rules, rule{"What stays as it is.", false, []string{"file-write*"}, slices.Concat(
			b.values("literal", "KEEP", keep), b.again("subpath", "KEEP", keep), b.spellings("KEEP_AS", keep, "(/.*)?$"))})
	}
	if pins := b.pins(slices.Concat(keep, c.Hidden)); len(pins) > 0 {
		rules = append(rules, rule{"What stays where it is: moved, it would have a name that no rule knows.", false,
			[]string{"file-write-create", "file-write-unlink"}, append(b.values("literal", "PIN", pins), b.spellings("PIN_AS", pins, "$")...)})
	}
	if len(c.Hidden) > 0 {
		rules = append(rules, rule{"What is hidden, whatever else is said: each operation by name, too, that an allowance above names.", false, []string{read, meta, mapx, exec, "file-write*"},
			slices.Concat(b.values("literal", "HIDDEN", c.Hidden), b.again("subpath", "HIDDEN", c.Hidden), b.spellings("HIDDEN_AS", c.Hidden, "(/.*)?$"))})
	}
	return rules
}

// pins are the directories that cannot be moved: those of the Config, the roots
// of Write, and what is between these and the names.
func (b *builder) pins(names []string) []string {
	pins := slices.Clone(b.config.Pin)
	for _, p := range b.config.Write {
		pins = append(pins, p.Name)
	}
	for _, dir := range ancestors(names) {
		if b.root(dir) != "" {
			pins = append(pins, dir)
		}
	}
	slices.Sort(pins)
	return slices.Compact(pins)
}

// root is the innermost directory of Write that has name in it, or is it, or "".
func (b *builder) root(name string) string {
	root := ""
	for _, p := range b.config.Write {
		if len(p.Name) > len(root) && (name == p.Name || p.Dir && strings.HasPrefix(name, p.Name+"/")) {
			root = p.Name
		}
	}
	return root
}

// spellings match the names as a case-insensitive file system does.
func (b *builder) spellings(key string, names []string, end string) []filter {
	var patterns []string
	for _, name := range names {
		if root := b.root(name); root != "" && root != name {
			patterns = append(patterns, fold(root, name[len(root):])+end)
		}
	}
	return b.values("regex", key, patterns)
}

func (b *builder) paths(key string, ps []Path) []filter {
	var fs []filter
	for i, p := range ps {
		word := "literal"
		if p.Dir {
			word = "subpath"
		}
		fs = append(fs, b.value(word, key, i, p.Name))
	}
	return fs
}

// values are parameters, and a filter for each.
func (b *builder) values(word, key string, values []string) []filter {
	var fs []filter
	for i, v := range values {
		fs = append(fs, b.value(word, key, i, v))
	}
	return fs
}

func (b *builder) value(word, key string, i int, value string) filter {
	name := fmt.Sprintf("%s_%d", key, i)
	b.params = append(b.params, name+"="+value)
	return filter{word: word, arg: name, param: true}
}

// again are other filters of parameters that are there.
func (b *builder) again(word, key string, values []string) []filter {
	var fs []filter
	for i := range values {
		fs = append(fs, filter{word: word, arg: fmt.Sprintf("%s_%d", key, i), param: true})
	}
	return fs
}
