package protect

// protected are the names that a guest may neither change nor make in a workspace:
// programs on the host execute these files, or let them decide what to execute, at
// the next ordinary use of the directory. Names are relative to the workspace.
//
// Code that people run knowingly (Makefile, package.json) is not here: a guest is
// there to write it.
var protected = []group{
	{why: "git follows it to other repositories", names: []string{
		".gitmodules",
	}},
	{why: "Mercurial runs the hooks that they name", names: []string{
		".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath",
	}},
	{why: "editors run what they say when the directory is opened", names: []string{
		".vscode", ".idea", ".zed",
	}},
	{why: "agents run the commands and servers that they define", names: []string{
		".claude", ".cursor", ".codex", ".gemini", ".continue", ".windsurf", ".mcp.json", ".aider.conf.yml",
	}},
	{why: "package managers run what they name, whatever is asked of them", names: []string{
		".npmrc", ".yarnrc", ".pnpmfile.cjs",
	}},
	{why: "they run elsewhere, with the project's secrets, as soon as they are pushed", names: []string{
		".github/workflows", ".github/actions", ".gitlab-ci.yml",
	}},
	{why: "shells, editors and git read them in the home directory, which has some of them",
		missing: together, names: []string{
			".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
			".inputrc", ".gitconfig", ".vim", ".vimrc", ".exrc", ".nvim", ".nvimrc",
		}},
	{why: "git runs them as hooks, once it has been told to", missing: mayBeMade, names: []string{
		".husky", ".githooks", ".pre-commit-config.yaml",
	}},
	{why: "they are asked about before they are run, if they are new", missing: mayBeMade, names: []string{
		".envrc", ".dir-locals.el", ".devcontainer",
	}},
	{why: "they run elsewhere, for projects that have been set up there", missing: mayBeMade, names: []string{
		".circleci", ".buildkite", ".travis.yml", ".drone.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml",
		"Jenkinsfile",
	}},
	{why: "yarn runs what it names, and fails where it is a directory", missing: mayBeMade, names: []string{
		".yarnrc.yml",
	}},
}

// group is names that are protected for one reason.
type group struct {
	why     string
	missing missing
	names   []string
}

// missing says how a name that does not exist is treated.
type missing uint8

const (
	never     missing = iota // it cannot be made
	together                 // it cannot be made where another of the group exists
	mayBeMade                // it does nothing by itself
)

// gitNames are protected in a directory of git, such as a workspace's .git. Git
// must be able to read what it looks for, even while it is a placeholder, so some
// placeholders are files.
var gitNames = []entry{
	{name: "hooks"},                              // executed
	{name: "config", file: true},                 // names commands: core.fsmonitor, core.hooksPath, filters, aliases
	{name: "config.worktree", file: true},        // names commands, with extensions.worktreeConfig
	{name: "commondir", file: true, data: ".\n"}, // where config and hooks are: here
	{name: "modules"},                            // the same, of submodules
	{name: "worktrees", missing: mayBeMade},      // the same, of linked ones; git makes new ones itself
}

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
	missing missing
	file    bool
	data    string
	closed  bool // a directory that nobody may search
}

// allNames are the names that may be allowed, or whose parents may.
func allNames() (names []string) {
	for _, g := range gitNames {
		names = append(names, ".git/"+g.name)
	}
	for _, g := range protected {
		names = append(names, g.names...)
	}
	return append(append(names, repositoryParts...), commonDir)
}
