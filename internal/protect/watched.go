package protect

// Watched is a path that does not exist on the host and that guests can make.
type Watched struct {
	Name string   // relative to its directory
	As   string   // its name in Options.AllowWrite
	Why  string   // continues the name: "which editors execute"
	What What     // what becomes of it
	Had  []string // Bare: which names it takes; Worktrees: those that exist
}

// What becomes of a watched path that a guest has made.
type What uint8

// The kinds of watched paths.
const (
	Tell       What = iota + 1 // it is reported, and stays
	Hold                       // it is moved aside; of a directory, what is in it
	Repository                 // a directory of git; what git would execute in it is moved aside
	Bare                       // the directory becomes a repository itself: one of Had is moved aside
	Worktrees                  // git's own directories of linked worktrees; as Repository
	Modules                    // those of submodules; as Repository
	Lock                       // git makes it to replace what is read-only, which is reported
)

// An Action is what became of something that a guest has made.
type Action string

// The actions.
const (
	Moved   Action = "moved"   // it was moved aside
	Stays   Action = "stays"   // it is where it was made
	Refused Action = "refused" // it could not be replaced
)

var whatNames = [...]string{
	Tell: "reported if it is made", Hold: "moved aside if it is made",
	Repository: "may be made; what git would execute in it is moved aside",
	Bare:       "moved aside if the directory becomes a repository",
	Worktrees:  "may be made; what git would execute in it is moved aside",
	Modules:    "may be made; what git would execute in it is moved aside",
	Lock:       "git's attempt to replace it is reported",
}

// String says what becomes of the path, as a Plan prints it.
func (w What) String() string { return whatNames[w] }
