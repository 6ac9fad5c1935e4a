package engine

// guarded is what hosts' tools execute, or let decide what they execute, by
// itself or at the next ordinary use of the directory: in a workspace a guest
// may neither change nor make it. Names are relative to the workspace.
//
// Code that people run knowingly (Makefile, package.json) is not here: it is
// what a guest is there to write.
var guarded = []guardGroup{
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
	{why: "shells, editors and git read them in the home directory, which has some of them", missing: together, names: []string{
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
		".circleci", ".buildkite", ".travis.yml", ".drone.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "Jenkinsfile",
	}},
	{why: "yarn runs what it names, and fails where it is a directory", missing: mayBeMade, names: []string{
		".yarnrc.yml",
	}},
}

// guardGroup is names that are guarded for one reason.
type guardGroup struct {
	why     string
	missing missing
	names   []string
}

// missing is what becomes of a name that does not exist.
type missing uint8

const (
	never     missing = iota // it cannot be made
	together                 // it cannot be made where another of the group exists
	mayBeMade                // it does nothing by itself
)

// guardedGit is what is guarded in a directory of git, which a workspace has as
// .git. What git reads has to stay readable to it while it is a ghost, so some
// ghosts are files.
var guardedGit = []guardedName{
	{name: "hooks"},                              // executed
	{name: "config", file: true},                 // names commands: core.fsmonitor, core.hooksPath, filters, aliases
	{name: "config.worktree", file: true},        // likewise, with extensions.worktreeConfig
	{name: "commondir", file: true, data: ".\n"}, // where config and hooks are: here
	{name: "modules"},                            // the same of submodules, of future ones too
	{name: "worktrees", missing: mayBeMade},      // the same of linked worktrees; git takes no existing one for a new one
}

// bareParts make a directory a repository, beside a config that may be missing.
// A file refs or objects is none of them, nor a directory that nobody may search;
// a HEAD would make the word ambiguous to git.
var bareParts = []string{"refs", "objects", "HEAD"}

// bareElsewhere says where refs and objects are.
const bareElsewhere = "commondir"

// guardedName is a name that is guarded, and what stands for it while it is
// missing: a directory, or a file with data.
type guardedName struct {
	name    string
	missing missing
	file    bool
	data    string
	closed  bool // a directory that nobody may search
}
