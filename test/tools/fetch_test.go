//go:build linux

package tools_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// python are the packages of one virtual environment; pytest has others beside it.
var python = strings.Fields("pytest==9.* black ruff isort mypy setuptools wheel hatchling setuptools_scm uv poetry pre-commit")

// fetched are the tools that come from PyPI and npm, in a directory that the next run finds again.
var fetched = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "tegmen-test-tools-1")
	if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
		return dir, nil
	}
	err = errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
	for _, script := range []string{
		"/usr/bin/python3 -m venv py && py/bin/pip install -q " + strings.Join(python, " "),
		"py/bin/pip install -q --target pytest7 'pytest==7.*' && py/bin/pip install -q --target pytest8 'pytest==8.*'",
		"npm install --silent --prefix npm pnpm9@npm:pnpm@9 pnpm10@npm:pnpm@10 yarn1@npm:yarn@1 yarn4@npm:@yarnpkg/cli-dist",
		"touch done",
	} {
		if err != nil {
			return "", err
		}
		if _, lerr := exec.LookPath("npm"); lerr != nil && strings.HasPrefix(script, "npm") {
			continue // its rows need it
		}
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		if out, rerr := cmd.CombinedOutput(); rerr != nil {
			err = errors.Join(rerr, errors.New(script+": "+string(out)))
		}
	}
	return dir, err
})

// registries needs the tools of PyPI and npm.
var registries = testenv.Try("registries", func() error {
	_, err := fetched()
	return err
})
