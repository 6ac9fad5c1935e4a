package check

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Shell checks a script for a POSIX shell or bash and returns an *Error, or nil. It
// examines the words of each command, including commands in $(…), backquotes and the
// argument of "sh -c". It accepts what is only mentioned in quotes, in a comment or as
// another command's argument.
func Shell(script string) error {
	c := shell{seen: make(map[string]bool)}
	c.script(script, 0)
	if forkBomb(script) {
		c.refuse("fork bomb")
	}
	return refused("shell", c.found)
}

type shell struct {
	found []string
	seen  map[string]bool
}

func (c *shell) refuse(reason string) {
	if !c.seen[reason] {
		c.seen[reason] = true
		c.found = append(c.found, reason)
	}
}

// script checks each command of a script. It checks nested scripts ("sh -c") down to
// three levels: each level needs another layer of quotes, so real scripts have fewer.
func (c *shell) script(s string, depth int) {
	for _, cmd := range splitShell(s) {
		words := cmd.words
		for _, target := range cmd.redirects {
			if isDisk(target) {
				c.refuse("write to a disk device")
			}
		}
		for len(words) > 0 {
			name := path.Base(words[0])
			c.command(name, words[1:])
			if isShell(name) {
				if cmd.fed {
					c.refuse("download piped into a shell")
				}
				if i := slices.Index(words, "-c"); i > 0 && i+1 < len(words) && depth < 3 {
					c.script(words[i+1], depth+1)
				}
			}
			if !prefixes[name] && !strings.Contains(words[0], "=") {
				break
			}
			// The prefixed command comes after options and assignments.
			words = words[1:]
			for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=")) {
				words = words[1:]
			}
		}
	}
}

// prefixes are the words that another command may follow.
var prefixes = map[string]bool{
	"sudo": true, "env": true, "nohup": true, "time": true, "nice": true,
	"command": true, "builtin": true, "xargs": true, "busybox": true, "setsid": true,
	"if": true, "then": true, "elif": true, "else": true,
	"while": true, "until": true, "do": true, "!": true, "{": true,
}

func isShell(name string) bool {
	return name == "sh" || name == "bash" || name == "zsh" || name == "dash"
}

// command checks one command, without prefixes.
func (c *shell) command(name string, args []string) {
	switch name {
	case "rm":
		if flag(args, 'r', "recursive") || flag(args, 'R', "") {
			if flag(args, 'f', "force") && slices.ContainsFunc(args, isEverything) {
				c.refuse("forced recursive removal of everything")
			}
		}
	case "dd":
		if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "if=") }) {
			c.refuse("dd with if=")
		}
	case "sudo":
		c.refuse("sudo")
	case "su":
		if slices.Contains(args, "-") || flag(args, 'l', "login") {
			c.refuse("su -")
		}
	case "chmod":
		world := func(a string) bool { return strings.HasSuffix(a, "777") }
		if flag(args, 'R', "recursive") && slices.ContainsFunc(args, world) && slices.ContainsFunc(args, isRoot) {
			c.refuse("recursive chmod 777 of /")
		}
	case "chown":
		if flag(args, 'R', "recursive") {
			c.refuse("recursive chown")
		}
	case "eval", "exec":
		c.refuse(name)
	case "git":
		c.git(args)
	case "shutdown", "reboot", "halt", "poweroff":
		c.refuse(name)
	case "kill":
		kills := func(a string) bool { return a == "-KILL" || a == "-SIGKILL" || a == "9" || a == "KILL" }
		if slices.Contains(args, "1") && (flag(args, '9', "") || slices.ContainsFunc(args, kills)) {
			c.refuse("kill -9 1")
		}
	default:
		if name == "mkfs" || strings.HasPrefix(name, "mkfs.") {
			c.refuse("mkfs")
		}
	}
}

func (c *shell) git(args []string) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-C" || args[0] == "-c" {
			args = args[1:]
		}
		args = args[min(1, len(args)):]
	}
	if len(args) == 0 {
		return
	}
	switch rest := args[1:]; args[0] {
	case "push":
		if flag(rest, 'f', "force") {
			c.refuse("git push --force")
		}
	case "reset":
		if slices.Contains(rest, "--hard") {
			c.refuse("git reset --hard")
		}
	case "clean":
		if flag(rest, 'f', "force") {
			c.refuse("git clean -f")
		}
	}
}

// flag reports whether the options include a letter, or --word.
func flag(args []string, letter rune, word string) bool {
	for _, a := range args {
		switch {
		case a == "--":
			return false
		case strings.HasPrefix(a, "--"):
			if word != "" && a == "--"+word {
				return true
			}
		case strings.HasPrefix(a, "-") && strings.ContainsRune(a, letter):
			return true
		}
	}
	return false
}

func isRoot(arg string) bool {
	return strings.HasPrefix(arg, "/") && path.Clean(arg) == "/"
}

func isEverything(arg string) bool {
	switch arg = strings.TrimSuffix(arg, "/"); arg {
	case "", "~", "*", ".*", "~/*", "$HOME", "${HOME}", "$HOME/*", "${HOME}/*":
		return true
	}
	return isRoot(arg) || isRoot(strings.TrimSuffix(arg, "*"))
}

var disk = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/dev/(sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|mapper/)`)
})

func isDisk(target string) bool {
	return strings.HasPrefix(target, "/dev/") && disk().MatchString(path.Clean(target))
}

// forkBomb reports whether a script has a function that pipes itself into itself in the
// background: ":(){ :|:& };:".
func forkBomb(script string) bool {
	s := strings.Join(strings.Fields(script), "")
	for {
		before, after, ok := strings.Cut(s, "(){")
		if !ok {
			return false
		}
		name := before[max(0, len(before)-64):]
		name = name[strings.LastIndexAny(name, ";&|(){}'\"`")+1:]
		if name != "" && strings.HasPrefix(after, name+"|"+name+"&") {
			return true
		}
		s = after
	}
}
