package engine

import (
	"path"
	"strings"
)

// gitUser is what guests' git is told of this user's own settings, as system-wide ones,
// which the repository's come before: who commits, and the filters of git-lfs, without
// which it would commit the files themselves. It is nothing else of these files: they
// have credentials and commands in them.
func (pl *planner) gitUser() string {
	if pl.spec.FS.Workspace == "" || pl.host.Home == "" || pl.host.ReadFile == nil {
		return ""
	}
	settings := make(map[string]string)
	for _, name := range []string{".config/git/config", ".gitconfig"} { // git reads them in this order
		src, err := pl.lookup(path.Join(pl.host.Home, name))
		if err != nil {
			continue
		}
		if text, err := pl.host.ReadFile(src.Path); err == nil {
			readGitConfig(string(text), settings)
		}
	}
	var b strings.Builder
	for _, key := range []string{"name", "email"} {
		if v := settings["user."+key]; v != "" && !strings.ContainsAny(v, "\"\\\x00") {
			if b.Len() == 0 {
				b.WriteString("[user]\n")
			}
			b.WriteString("\t" + key + " = \"" + v + "\"\n")
		}
	}
	if settings[`filter "lfs".clean`] == "git-lfs clean -- %f" { // as git lfs install writes it
		b.WriteString("[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n" +
			"\tprocess = git-lfs filter-process\n\trequired = true\n")
	}
	return b.String()
}

// readGitConfig adds the settings of a text, as far as they are plain: "section.key".
func readGitConfig(text string, settings map[string]string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section, _, _ = strings.Cut(line[1:], "]")
			name, sub, has := strings.Cut(section, " ")
			if section = strings.ToLower(name); has {
				section += " " + sub
			}
		default:
			key, value, _ := strings.Cut(line, "=")
			if value = strings.TrimSpace(value); !strings.HasPrefix(value, `"`) {
				value, _, _ = strings.Cut(value, " #")
				value, _, _ = strings.Cut(value, " ;")
			}
			settings[section+"."+strings.ToLower(strings.TrimSpace(key))] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
}
