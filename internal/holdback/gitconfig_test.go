package holdback

import (
	"os"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestHarmlessGitConfig(t *testing.T) {
	for text, want := range map[string]bool{
		"": true,
		"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n": true,
		"[remote \"origin\"]\n\turl = git@host:x/y.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n":        true,
		"[branch \"a/b.c\"]\n\tremote = origin\n\tmerge = refs/heads/a\n":                                       true,
		"# a comment\n; another\n[user]\n\tname = \"A B\"\r\n\temail = a@x\n":                                   true,
		"[CORE]\n\tBare = false\n":                             true,
		"[submodule \"s\"]\n\turl = ../s\n\tactive = true\n":   true,
		"[core]\n\tfsmonitor = evil\n":                         false,
		"[core]\n\tworktree = /\n":                             false,
		"[core]\n\tworktree = ../../..\n":                      false,
		"[core]\n\thooksPath = x\n":                            false,
		"[core]\n\tbare\n":                                     false,
		"[core] bare = false\n":                                false,
		"[core]\tfsmonitor = evil\n":                           false,
		"[core]\n\tbare = false \\\n[core]\n":                  false,
		"[include]\n\tpath = x\n":                              false,
		"[includeIf \"gitdir:/\"]\n\tpath = x\n":               false,
		"[alias]\n\tst = !evil\n":                              false,
		"[filter \"lfs\"]\n\tclean = git-lfs clean\n":          false,
		"[remote \"origin\"]\n\turl = ext::sh -c evil\n":       false,
		"[remote \"origin\"]\n\turl = \"-oProxyCommand=x\"\n":  false,
		"[remote \"origin\"]\n\turl = ext:\"\":sh -c evil\n":   false,
		"[remote \"origin\"]\n\turl = \"\t-oProxyCommand=x\n":  false,
		"[remote \"origin\"]\n\turl = \" \t-oProxyCommand\"\n": false,
		"[remote \"origin\"]\n\turl = \"/a b\"\n":              true,
		"[remote \"origin\"]\n\tuploadpack = evil\n":           false,
		"[remote.origin]\n\turl = x\n":                         false,
		"[submodule \"s\"]\n\tupdate = !evil\n":                false,
		"[extensions]\n\tworktreeConfig = true\n":              false,
		"[user\n\tname = x\n":                                  false,
		"[user \"x\" \"y\"]\n\tname = x\n":                     false,
		"[user]\n\tname = a\x00b\n":                            false,
		"\ufeff[core]\n\tbare = false\n":                       false,
		"name = x\n":                                           false,
		"[core]\n\tbare = false\n[core\n]\n\tfsmonitor = e\n":  false,
		"[core]\n\tbare = false\n\tsshCommand = evil\n":        false,
		"[credential]\n\thelper = evil\n":                      false,
		"[diff \"x\"]\n\ttextconv = evil\n":                    false,
		"[core]\n\tbare = false\n\tpager = evil\n[user]\n":     false,
		"[gpg]\n\tprogram = evil\n":                            false,
		"[core]\n\teditor = evil\n":                            false,
		"[remote \"a\\\"b\"]\n\turl = x\n":                     false,
		"[remote \"a]\n\tvcs = evil\n[remote \"b\"]\n":         false,
		"[uploadpack]\n\tpackObjectsHook = evil\n":             false,
		"[core]\n\tbare = false\n\t\n\t # x\n\tgitProxy = e\n": false,
	} {
		if got := harmlessGitConfig(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestHarmlessModuleConfig(t *testing.T) {
	for text, want := range map[string]bool{
		"[core]\n\tbare = false\n\tworktree = ../../../sub\n": true,
		"[core]\n\tworktree = /\n":                            false,
		"[core]\n\tworktree = ../x\n\tfsmonitor = evil\n":     false,
		"[core]\n\tworktree = ../\\\n\tfsmonitor = evil\n":    false,
	} {
		if got := harmlessModuleConfig(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
