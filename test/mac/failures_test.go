//go:build darwin || (linux && (amd64 || arm64))

package mac

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// attempts are the ways to start a command. Each returns how it ended.
var attempts = map[string]func(*engine.Cmd) (*engine.Result, error){
	"Run": (*engine.Cmd).Run,
	"Start": func(c *engine.Cmd) (*engine.Result, error) {
		if err := c.Start(); err != nil {
			return nil, err
		}
		return c.Wait()
	},
}

// A program that cannot be executed is an error that says so, not an exit code of a shell.
func TestProgramsThatCannotRun(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	sh(t, box, "echo text >plain; mkdir dir bin; : >bin/x")
	for _, c := range []struct {
		name     string
		notFound bool
	}{
		{"nonesuch-program", true}, {"/nonesuch", true}, {"./nonesuch", true}, {"dir/nonesuch", true}, {"two words", true},
		{"./plain", false}, {"./dir", false}, {"/", false},
	} {
		for how, attempt := range attempts {
			res, err := attempt(box.CommandContext(testbox.Within(t, limit), c.name))
			var exec *engine.ExecError
			if res != nil || !errors.As(err, &exec) || exec.NotFound != c.notFound || exec.Name != c.name {
				t.Errorf("%s by %s: %+v, %v; want an ExecError, not found: %v", c.name, how, res, err, c.notFound)
			}
		}
	}
	if got := sh(t, box, "echo on"); got != "on" { // and the sandbox goes on
		t.Errorf("got %q", got)
	}
}

// If sandbox-exec fails, that is an error of the engine, never a result of the command, and nothing runs unconfined
// instead.
func TestSandboxExecFails(t *testing.T) {
	for _, c := range []struct {
		name, script string // "": there is none
		unsupported  bool
		says         string
	}{
		{"invalid profile", "echo 'sandbox-exec: <input string>:3:0: invalid profile' >&2; exit 65", false,
			"invalid profile"},
		{"nested", "echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71", true, "nest"},
		{"usage", "echo 'Usage: sandbox-exec [options] command [args]' >&2; exit 64", false, "Usage"},
		{"exec refused", "echo 'sandbox-exec: execvp() of /bin/bash failed: Operation not permitted' >&2; exit 71", false,
			"execvp"},
		{"killed", "echo 'about to' >&2; kill -9 $$", false, "about to"},
		{"says nothing", "exit 71", false, ""},
		{"killed at once", "kill -9 $$", false, ""},
		{"missing", "", false, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir(t), "sandbox-exec")
			temp := private(t)
			if c.script != "" {
				script(t, path, c.script)
			}
			box := start(t, open(t, func(h *engine.Host) { h.SandboxExec = path }), engine.Spec{Keep: true})
			witness := filepath.Join(box.Plan().Dir, "ran")
			for how, attempt := range attempts {
				res, err := attempt(box.CommandContext(testbox.Within(t, limit), "touch", witness))
				if err == nil || res != nil || errors.Is(err, engine.ErrUnsupported) != c.unsupported ||
					!strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.says)) {
					t.Errorf("%s: %+v, %v; want an error with %q", how, res, err, c.says)
				}
			}
			if exists(witness) {
				t.Error("the program ran")
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
			empty(t, temp)
		})
	}
}

// The stand-in refuses as the real one does inside another sandbox. Code is refused then as well.
func TestNested(t *testing.T) {
	h, err := macHost()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir(t), "sandbox-exec")
	temp := private(t)
	if standIn {
		script(t, path, "TEGMEN_TEST_NESTED=1 exec '"+h.SandboxExec+`' "$@"`)
	} else {
		script(t, path, `exec /usr/bin/sandbox-exec -p '(version 1)(allow default)' /usr/bin/sandbox-exec "$@"`)
	}
	eng := open(t, func(h *engine.Host) { h.SandboxExec, h.TrySeatbelt = path, nil })
	res, err := eng.RunCode(testbox.Within(t, limit), engine.Spec{}, engine.Code{Language: "sh", Source: "echo ran"}, nil)
	if res != nil || !errors.Is(err, engine.ErrUnsupported) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("%+v, %v", res, err)
	}
	empty(t, temp)
}
