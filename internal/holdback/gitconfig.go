package holdback

import (
	"slices"
	"strings"
)

// gitKeys are the settings of git that make it execute nothing and look nowhere
// else, by section: those that git init, clone, switch and submodule write, and who
// commits. A section without a name of its own is "core", one with is "remote.*".
var gitKeys = map[string][]string{
	"core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
		"symlinks", "sharedrepository", "autocrlf", "eol", "safecrlf", "quotepath"},
	"extensions":  {"objectformat", "refstorage", "compatobjectformat"},
	"user":        {"name", "email"},
	"init":        {"defaultbranch"},
	"remote.*":    {"url", "fetch", "tagopt", "prune"},
	"branch.*":    {"remote", "merge", "rebase", "description"},
	"submodule":   {"active", "recurse"},
	"submodule.*": {"url", "active", "branch"},
	"pull":        {"rebase", "ff"},
	"push":        {"default", "autosetupremote"},
	"index":       {"version", "sparse", "skiphash"},
	"lfs":         {"repositoryformatversion"},
}

// harmlessModuleConfig is harmlessGitConfig for a submodule's repository, which says
// where the submodule is checked out. In another that would make git clean and git
// checkout work anywhere.
func harmlessModuleConfig(text string) bool {
	var rest strings.Builder
	for line := range strings.Lines(text) {
		if to, ok := strings.CutPrefix(strings.TrimSpace(line), "worktree = ../"); !ok || strings.ContainsAny(to, "\\\"") {
			rest.WriteString(line)
		}
	}
	return harmlessGitConfig(rest.String())
}

// harmlessGitConfig reports whether git executes nothing for the settings in a text.
// It understands only what git itself writes: everything else is harmful.
func harmlessGitConfig(text string) bool {
	var allowed []string
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\r\n")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case strings.ContainsAny(line, "\\\x00"): // it may go on in the next line
			return false
		case line[0] == '[':
			name, ok := sectionOf(line)
			if !ok {
				return false
			}
			allowed = gitKeys[name]
		case !harmlessSetting(line, allowed):
			return false
		}
	}
	return true
}

// sectionOf is the key in gitKeys of a line such as [core] or [remote "origin"].
func sectionOf(line string) (string, bool) {
	name, ok := strings.CutSuffix(line[1:], "]")
	name, sub, has := strings.Cut(name, ` "`)
	if has {
		sub, ok = strings.CutSuffix(sub, `"`)
		ok = ok && strings.HasSuffix(line, `"]`)
	}
	if !ok || strings.ContainsAny(sub, `"`) || strings.ContainsAny(name, `]["=. `) {
		return "", false
	}
	if name = strings.ToLower(name); has {
		name += ".*"
	}
	return name, true
}

func harmlessSetting(line string, allowed []string) bool {
	key, value, ok := strings.Cut(line, "=")
	key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
	if inner, quoted := strings.CutPrefix(value, `"`); quoted {
		if value, quoted = strings.CutSuffix(inner, `"`); !quoted {
			return false
		}
		value = strings.TrimSpace(value)
	}
	// Quotes within are dropped by git: ext:"": is ext::.
	if !ok || !slices.Contains(allowed, key) || strings.Contains(value, `"`) {
		return false
	}
	// "ext::sh -c …" is a command, and so can be what begins with a dash.
	return key != "url" || !strings.Contains(value, "::") && !strings.HasPrefix(value, "-")
}
