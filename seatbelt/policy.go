package seatbelt

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// builder collects the parameters that the rules of a Config use.
type builder struct {
	config Config
	params []string
}

// The operations on a program file.
const (
	read = "file-read*"
	meta = "file-read-metadata"
	mapx = "file-map-executable" // dyld's mmap, checked in addition to reading
	exec = "process-exec*"       // covers the interpreter of a script
)

// rules returns the profile's rules in order: the last one that matches wins.
func (b *builder) rules() []rule {
	c := b.config
	own := append(b.paths("READ", c.Read), b.paths("WRITE", c.Write)...)
	starts := append(b.values("literal", "LAUNCHER", c.Launcher), b.values("literal", "PROGRAM", program(c))...)
	rules := slices.Concat(processes(), b.reading(own, starts), devices(c), system())
	if len(c.Write) > 0 {
		writes := own[len(c.Read):]
		rules = append(rules,
			allow("Writable files.", writes, "file-write*"),
			deny("A set-user-ID program left behind would let others act as this user.", nil, "file-write-setugid"))
	}
	if len(c.Ports) > 0 {
		ports := slices.Compact(slices.Sorted(slices.Values(c.Ports)))
		var remote []filter
		for _, port := range ports {
			remote = append(remote, filter{word: "remote tcp", arg: "localhost:" + strconv.Itoa(port)})
		}
		rules = append(rules, allow("Ports that can be connected to.", remote, "network-outbound"))
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
		allow("Children run in the same sandbox.", nil, "process-fork"),
		allow("A process can inspect itself,", []filter{{word: "target self"}}, "process-info*"),
		allow("and signal the processes of its sandbox.", []filter{{word: "target same-sandbox"}}, "signal"),
	}
}

// reading allows reading and executing together, since a process can load any program
// that it can read.
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
			allow("Everything can be read,", nil, ops...),
			deny("except terminals, disks, and the second names that everything has there and in backups: rules that "+
				"hide files do not match those.",
				each("subpath", "/dev", "/System/Volumes/Data", "/Volumes"), read, mapx, exec))
	} else {
		trees := each("subpath", systemTrees()...)
		data := append(each("subpath", systemData()...), each("literal", systemFiles()...)...)
		rules = append(rules,
			allow("The system's programs and libraries.", trees, read, mapx),
			allow("Files that they read at start.", data, read))
		if c.Program == "" {
			rules = append(rules, allow("The system's programs can be executed.", trees, exec))
		}
		rules = append(rules, allow("Directories above readable files, for realpath and getcwd; not their contents.",
			b.above(), meta))
	}
	if len(mine) > 0 {
		rules = append(rules, allow("Files that the sandbox was given.", mine, read, mapx))
	}
	if len(runs) > 0 {
		rules = append(rules, allow("Programs that can be executed.", runs, exec))
	}
	return rules
}

// above matches the directories above everything that can be read.
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

// ancestors returns the directories above names except "/", sorted.
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

// ttys matches terminals. Those created inside the sandbox have the extension
// com.apple.sandbox.pty.
const ttys = "^/dev/ttys[0-9]+$"

func devices(c Config) []rule {
	created := []filter{{word: "require-all", sub: []filter{
		{word: "regex", arg: ttys}, {word: "extension", arg: "com.apple.sandbox.pty"}}}}
	pty := []string{read, "file-write-data", "file-ioctl"}
	rules := []rule{
		allow("Devices that hold no data. Every program opens dtracehelper; the ioctl that reaches DTrace is denied.",
			each("literal", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
				"/dev/dtracehelper", "/dev/autofs_nowait"), read),
		allow("Open descriptors by number,", each("subpath", "/dev/fd"), read, "file-write-data"),
		allow("and by name.", each("literal", "/dev", "/dev/stdin", "/dev/stdout", "/dev/stderr"), meta),
		allow("Devices that discard output.", each("literal", "/dev/null", "/dev/zero"), "file-write-data"),
		allow("Terminals can be created, as script and tmux do,", nil, "pseudo-tty"),
		allow("by opening this device,", each("literal", "/dev/ptmx"), pty...),
		allow("and used. The user's terminal cannot: a guest would read what is typed.", created, pty...),
	}
	if c.Terminal {
		rules = append(rules,
			allow("The sandbox's terminal.", each("literal", "/dev/tty"), pty...),
			allow("Modes and size of open terminals. They cannot be opened by name.",
				each("regex", ttys), meta, "file-ioctl"))
	}
	return rules
}

func system() []rule {
	return []rule{
		allow("Mach services; each is a program outside the sandbox.",
			each("global-name", services()...), "mach-lookup"),
		allow("Properties of the machine.", sysctls(), "sysctl-read"),
		allow("Locks of Python's multiprocessing,", each("ipc-posix-name-prefix", "/mp-"), "ipc-posix-sem"),
		allow("and its shared memory.", each("ipc-posix-name-prefix", "/psm_"), "ipc-posix-shm*"),
	}
}

// denials come after everything that is allowed.
func (b *builder) denials() []rule {
	c := b.config
	outside := func(name string) bool { return b.root(name) == "" }
	keep := slices.Concat(c.Keep, slices.DeleteFunc(slices.Concat(c.Launcher, program(c)), outside))
	var rules []rule
	if len(keep) > 0 {
		rules = append(rules, deny("Kept files.", b.everySpelling("KEEP", keep), "file-write*"))
	}
	if pins := b.pins(slices.Concat(keep, c.Hidden)); len(pins) > 0 {
		rules = append(rules, deny("Directories that cannot be moved: the rules do not match their contents elsewhere.",
			append(b.values("literal", "PIN", pins), b.spellings("PIN_AS", pins, "$")...),
			"file-write-create", "file-write-unlink"))
	}
	if len(c.Hidden) > 0 {
		rules = append(rules, deny("Hidden files. This names every operation that a rule above allows by name.",
			b.everySpelling("HIDDEN", c.Hidden), read, meta, mapx, exec, "file-write*"))
	}
	return rules
}

// everySpelling matches the names and everything beneath them in all spellings.
func (b *builder) everySpelling(key string, names []string) []filter {
	return slices.Concat(b.values("literal", key, names), b.again("subpath", key, names),
		b.spellings(key+"_AS", names, "(/.*)?$"))
}

// pins lists the directories that cannot be moved: those of the Config, the roots of
// Write, and the directories between these roots and the names.
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

// root returns the innermost path in Write that is or contains name, or "".
func (b *builder) root(name string) string {
	root := ""
	for _, p := range b.config.Write {
		if len(p.Name) > len(root) && (name == p.Name || p.Dir && strings.HasPrefix(name, p.Name+"/")) {
			root = p.Name
		}
	}
	return root
}

// spellings matches the names as a case-insensitive file system does.
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

// values adds parameters and returns a filter for each.
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

// again returns more filters for parameters that values has added.
func (b *builder) again(word, key string, values []string) []filter {
	var fs []filter
	for i := range values {
		fs = append(fs, filter{word: word, arg: fmt.Sprintf("%s_%d", key, i), param: true})
	}
	return fs
}
