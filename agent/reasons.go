package agent

import (
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// reason says, in words for a model, why a file operation failed. errors.Is matches
// several errors.
type reason struct {
	text string
	is   []error
}

// Error returns the text for a model.
func (r *reason) Error() string { return r.text }

// Unwrap returns the errors that it matches.
func (r *reason) Unwrap() []error { return r.is }

func because(text string, is ...error) error { return &reason{text, is} }

var (
	isDirectory = because("is a directory", syscall.EISDIR)
	readOnly    = because("read-only in this sandbox", fs.ErrPermission, syscall.EROFS)
	parentNone  = because("a parent is not a directory", syscall.ENOTDIR)
)

// findings maps the exit codes of our scripts to errors.
var findings = map[int]error{
	80: fs.ErrNotExist,
	81: isDirectory,
	82: errors.New("is not a regular file"),
	83: fs.ErrPermission,
	84: because("is not a directory", syscall.ENOTDIR),
	85: errors.New("has too many levels of symbolic links, or a dangling one"),
}

// reasons maps the end of a program's error message, in lower case, to an error. The
// beginning names our script and its temporary files.
var reasons = map[string]error{
	"read-only file system":             readOnly,
	"permission denied":                 fs.ErrPermission,
	"operation not permitted":           because("operation not permitted", syscall.EPERM),
	"no space left on device":           because("no space left", syscall.ENOSPC),
	"disk quota exceeded":               because("no space left", syscall.EDQUOT),
	"file too large":                    because("exceeds the size limit for files", syscall.EFBIG),
	"not a directory":                   parentNone,
	"file exists":                       parentNone, // from mkdir -p, which accepts an existing directory
	"is a directory":                    isDirectory,
	"file name too long":                because("a name in it is too long", syscall.ENAMETOOLONG),
	"filename too long":                 because("a name in it is too long", syscall.ENAMETOOLONG),
	"no such file or directory":         fs.ErrNotExist,
	"no such file":                      fs.ErrNotExist, // dash
	"directory nonexistent":             fs.ErrNotExist, // dash
	"too many levels of symbolic links": findings[85],
}

// scriptLine matches the beginning of shells' messages about our scripts.
var scriptLine = regexp.MustCompile(`^\S*sh:(?: line)? ?\d+: `)

// whyFailed turns the error output of a failed script into an error.
func whyFailed(stderr string, code int) error {
	said := strings.TrimSpace(strings.ToValidUTF8(stderr, "\uFFFD"))
	said = scriptLine.ReplaceAllString(said[strings.LastIndexByte(said, '\n')+1:], "")
	last := said[strings.LastIndex(said, ": ")+1:]
	if err := reasons[strings.ToLower(strings.TrimSpace(last))]; err != nil {
		return err
	}
	first, _, _ := strings.Cut(said, ": ") // zsh puts the reason before the name
	if err := reasons[strings.ToLower(first)]; err != nil {
		return err
	}
	if strings.Contains(said, tempPrefix) {
		said = strings.TrimSpace(last)
	}
	if said == "" || strings.Contains(said, tempPrefix) {
		said = "exit code " + strconv.Itoa(code)
	}
	return errors.New(said)
}
