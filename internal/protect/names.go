package protect

// protected are the names that a guest may not change in a workspace: programs on
// the host execute these files, or let them decide what to execute. Names are
// relative to the workspace.
//
// Code that people run knowingly (Makefile, package.json) is not here: a guest is
// there to write it.
var protected = []group{
	{why: "which git follows to other repositories", missing: told, names: []string{
		".gitmodules",
	}},
	{why: "which names hooks that Mercurial runs", names: []string{
		".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath",
	}},
	{why: "which editors execute", names: []string{
		".vscode", ".idea", ".zed",
	}},
	{why: "which agents execute", names: []string{
		".claude", ".cursor", ".codex", ".gemini", ".continue", ".windsurf", ".mcp.json", ".aider.conf.yml",
	}},
	{why: "which package managers execute", missing: told, names: []string{
		".npmrc", ".yarnrc", ".pnpmfile.cjs",
	}},
	{why: "which runs elsewhere with the project's secrets, once it is pushed", missing: told, names: []string{
		".github/workflows", ".github/actions", ".gitlab-ci.yml",
	}},
	{why: "which shells, editors or git execute in a home directory", missing: together, names: []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
		".inputrc", ".gitconfig", ".vim", ".vimrc", ".exrc", ".nvim", ".nvimrc",
	}},
	{why: "which git runs as hooks, once it has been told to", missing: harmless, names: []string{
		".husky", ".githooks", ".pre-commit-config.yaml",
	}},
	{why: "which tools execute after asking", missing: harmless, names: []string{
		".envrc", ".dir-locals.el", ".devcontainer",
	}},
	{why: "which runs elsewhere, for projects that have been set up there", missing: harmless, names: []string{
		".circleci", ".buildkite", ".travis.yml", ".drone.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml",
		"Jenkinsfile",
	}},
	{why: "which yarn executes", missing: harmless, names: []string{ // and a directory of that name breaks it
		".yarnrc.yml",
	}},
}

// group is names that are protected for one reason.
type group struct {
	why     string // continues the name: "which editors execute"
	missing missing
	names   []string
}

// missing says how a name that does not exist is treated. What a program of the host
// executes when the directory is merely opened, entered or asked for its status is
// never left there; what it executes when somebody runs it is only reported.
type missing uint8

const (
	never    missing = iota // it cannot be made, or is held back
	together                // likewise, where another of the group exists
	told                    // it can be made, and is reported; Strict: as never
	harmless                // it can be made, and is reported
)

// gitNames are protected in a directory of git, such as a workspace's .git. Git
// must be able to read what it looks for, even while it is a placeholder, so some
// placeholders are files.
var gitNames = []entry{
	{name: "hooks", inGit: true},                              // executed
	{name: "config", inGit: true, file: true},                 // names commands: core.fsmonitor, filters, aliases
	{name: worktreeConfig, inGit: true, file: true},           // names commands, with extensions.worktreeConfig
	{name: "commondir", inGit: true, file: true, data: ".\n"}, // where config and hooks are: here
	{name: "modules", why: gitExecutes, what: Modules},        // the same, of submodules
}

const (
	gitExecutes    = "which git executes"
	worktreeConfig = "config.worktree"
)

// worktreesDir is, in a directory of git, where linked worktrees have the same.
const worktreesDir = "worktrees"

// repositoryParts make a directory a bare repository, even without a config. A file
// refs or objects does not count, nor does a directory that nobody may search; a
// HEAD would make the word ambiguous to git.
var repositoryParts = []string{"refs", "objects", "HEAD"}

// commonDir is a file that tells git where refs and objects are.
const commonDir = "commondir"

// entry is a protected name, and what stands for it while it is missing: a
// directory, or a file with data.
type entry struct {
	name    string
	as      string // its name in Options.AllowWrite
	why     string // as of a group
	missing missing
	inGit   bool // in a directory of git, where it is not watched: see planner.missing
	what    What // becomes of it while it is watched; 0 is Hold
	file    bool
	data    string
	closed  bool // a directory that nobody may search
}

// allNames are the names that may be allowed, or whose parents may.
func allNames() (names []string) {
	for _, g := range gitNames {
		names = append(names, ".git/"+g.name)
	}
	names = append(names, ".git/"+worktreesDir)
	for _, g := range protected {
		names = append(names, g.names...)
	}
	return append(append(names, repositoryParts...), commonDir)
}
