//go:build linux

package tools_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

// A row is what somebody does with a tool in a fresh project.
type row struct {
	name, needs string
	setup       string // on the host, before
	script      string // inside, and on the host
	where       string // "" is everywhere
}

// inside has a row run only there: it takes a minute, and shows nothing else outside.
const inside = "inside"

const goProject = "git init -q; printf 'module x\\ngo 1.20\\n' >go.mod; printf 'package main\\n\\nfunc main() { println(F()) }\\n' >main.go; " +
	"printf 'package main\\n\\nfunc F() int { return 1 }\\n' >f.go; printf 'package main\\n\\nimport \"testing\"\\n\\n" +
	"func TestF(t *testing.T) { if F() != 1 { t.Fatal() } }\\n' >f_test.go; git add .; git commit -qm 1"

const pyProject = "mkdir mypkg; echo 'X: int = 1' >mypkg/__init__.py; printf 'from mypkg import X\\n\\n\\ndef test_x() -> None:\\n    assert X == 1\\n' >test_x.py; "

const setuptools = pyProject + `printf '[build-system]\nrequires=["setuptools"]\nbuild-backend="setuptools.build_meta"\n[project]\nname="mypkg"\nversion="1"\n' >pyproject.toml`

const hatchling = pyProject + `printf '[build-system]\nrequires=["hatchling"]\nbuild-backend="hatchling.build"\n[project]\nname="mypkg"\nversion="1"\n' >pyproject.toml`

var rows = []row{
	{"go build", "go", goProject, "go build -o x . && ./x && go list ./... && go vet ./...", ""},
	{"go install and test", "go", goProject, "GOBIN=$PWD/bin go install . && go test ./...", ""},
	{"go test -race", "go", goProject, "go test -race ./...", inside},
	{"go outside of a repository", "go", "printf 'module x\\ngo 1.20\\n' >go.mod; printf 'package main\\n\\nfunc main() {}\\n' >main.go", "go build -o x . && go list ./...", ""},
	{"pytest 7", "python", pyProject, "PYTHONPATH=$TOOLS/pytest7:. python -m pytest -q -p no:cacheprovider", ""},
	{"pytest 8", "python", pyProject, "PYTHONPATH=$TOOLS/pytest8:. python -m pytest -q", ""},
	{"pytest 9", "python", pyProject, "PYTHONPATH=. python -m pytest -q", ""},
	{"black, ruff, isort, mypy", "python", pyProject, "black -q --check . && ruff check -q . && isort -q --check . && mypy . && for d in */; do (cd \"$d\"); done", ""},
	{"pip wheel, setuptools", "python", setuptools, "pip wheel -q --no-build-isolation --no-deps -w dist . && ls dist/*.whl", ""},
	{"pip wheel, hatchling", "python", hatchling, "pip wheel -q --no-build-isolation --no-deps -w dist . && ls dist/*.whl", ""},
	{"pip install -e", "python", setuptools, "pip install -q --no-build-isolation --no-deps --target t -e . && ls t", ""},
	{"setuptools_scm", "python", "git init -q; touch a; printf '[tool.setuptools_scm]\\n' >pyproject.toml; git add .; git commit -qm 1; git tag v1.2.3", "python -m setuptools_scm | grep 1.2.3", ""},
	{"uv init", "python", "", "uv init -q --offline --no-python-downloads --name x . && ls pyproject.toml .git", ""},
	{"poetry", "python", pyProject, "poetry init -q -n --name mypkg && poetry check -q || poetry check", ""},
	{"npm", "npm", `mkdir dep; echo '{"name":"dep","version":"1.0.0"}' >dep/package.json; echo '{"name":"w","version":"1.0.0"}' >package.json`, "npm install --silent --offline ./dep && npm ls", ""},
	{"pnpm 9", "npm", `echo '{"name":"w"}' >package.json`, "node $TOOLS/npm/node_modules/pnpm9/bin/pnpm.cjs install --offline --silent", ""},
	{"pnpm 10", "npm", `echo '{"name":"w"}' >package.json`, "node $TOOLS/npm/node_modules/pnpm10/bin/pnpm.cjs install --offline --silent", ""},
	{"yarn 1", "npm", `echo '{"name":"w","license":"MIT"}' >package.json`, "node $TOOLS/npm/node_modules/yarn1/bin/yarn.js install --offline --silent", ""},
	{"yarn 4", "npm", `echo '{"name":"w","packageManager":"yarn@4.0.0"}' >package.json; touch yarn.lock`, "YARN_IGNORE_PATH=1 YARN_ENABLE_GLOBAL_CACHE=0 node $TOOLS/npm/node_modules/yarn4/bin/yarn.js install", ""},
	{"cargo", "cargo", "", "cargo init -q --name x && cargo build -q --offline && cargo test -q --offline", ""},
	{"cmake and make -j", "cmake", "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x C)\\nadd_executable(x x.c)\\n' >CMakeLists.txt; echo 'int main() { return 0; }' >x.c", "cmake -S . -B b >/dev/null && make -s -j4 -C b && b/x", ""},
	{"maven", "mvn", "printf '<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version></project>' >pom.xml", "mvn -q -o validate -Dmaven.repo.local=m2", ""},
	{"git init and commit", "git", "", "git init -q && touch a && git add a && git commit -qm 1 && git status", ""},
	{"git clone", "git", "git init -q src; git -C src commit -q --allow-empty -m 1", "git clone -q src dst && git -C dst log --oneline", ""},
	{"git switch, stash, rebase", "git", "git init -q -b main; echo 1 >f; git add f; git commit -qm 1", "git switch -qc b && echo 2 >g && git add g && git commit -qm 2 && git switch -q main && " +
		"echo 3 >h && git add h && git commit -qm 3 && git switch -q b && git rebase -q main && echo 4 >f && git stash -q && git stash pop -q", ""},
	{"git worktree", "git", "git init -q -b main; git commit -q --allow-empty -m 1; git worktree add -q .worktrees/x -b x", "cd .worktrees/x && echo 1 >f && git add f && git commit -qm 2 && git worktree add -q ../y -b y", ""},
	{"git lfs", "git-lfs", "git init -q; git lfs install --local >/dev/null; echo '*.bin filter=lfs diff=lfs merge=lfs -text' >.gitattributes; git add .; git commit -qm 1",
		"head -c 1000 /dev/zero >b.bin && git add b.bin && git commit -qm 2 && git cat-file -p HEAD:b.bin | grep -q git-lfs", ""},
	{"git clone of CI", "git", "git init -q src; mkdir -p src/.github/workflows; touch src/.github/workflows/a.yml src/.npmrc; git -C src add .; git -C src commit -qm 1; git init -q; " +
		"git fetch -q src", "git -c advice.detachedHead=false checkout -q FETCH_HEAD && ls .github/workflows/a.yml .npmrc", ""},
	{"pre-commit", "python", "git init -q; printf 'repos:\\n- repo: local\\n  hooks:\\n  - {id: x, name: x, entry: \"true\", language: system}\\n' >.pre-commit-config.yaml; git add .; git commit -qm 1",
		"pre-commit run --all-files", ""},
}

// environment is what a script sees, inside and on the host.
func environment(t *testing.T, tools, gocache string) []string {
	t.Helper()
	path := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	for _, name := range []string{"go", "cargo"} {
		if root := toolchain(name); root != "" {
			path = append(path, filepath.Join(root, "bin"))
		}
	}
	return []string{
		"PATH=" + filepath.Join(tools, "py/bin") + ":" + strings.Join(path, ":"), "TOOLS=" + tools,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GOCACHE=" + gocache, "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOPROXY=off", "GOTELEMETRY=off", "PYTHONDONTWRITEBYTECODE=1",
		"PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INDEX=1", "YARN_ENABLE_TELEMETRY=0", "npm_config_update_notifier=false",
	}
}

// toolchain is where a compiler is installed; "" if it is in /usr, or nowhere.
func toolchain(name string) string {
	command := map[string][]string{"go": {"go", "env", "GOROOT"}, "cargo": {"rustc", "--print", "sysroot"}}[name]
	out, err := exec.Command(command[0], command[1:]...).Output()
	root := strings.TrimSpace(string(out))
	if err != nil || strings.HasPrefix(root, "/usr/") && !strings.HasPrefix(root, "/usr/local") || root == "/usr" {
		return ""
	}
	return root
}

func need(t *testing.T, r row) {
	t.Helper()
	testenv.NoRace(t)
	testenv.Long(t)
	switch r.needs {
	case "python":
		testenv.Need(t, registries)
	case "npm":
		testenv.Need(t, testenv.Program("npm"), registries)
	default:
		testenv.Need(t, testenv.Program(r.needs))
	}
	testenv.Need(t, testenv.Program("git"))
}

// project makes the directory of a row.
func project(t *testing.T, r row, env []string) string {
	t.Helper()
	dir := filepath.Join(testenv.Dir(t), "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	onHost(t, dir, env, r.setup)
	return dir
}

// onHost runs a script outside.
func onHost(t *testing.T, dir string, env []string, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "HOME="+testenv.Dir(t), "TMPDIR="+os.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("on the host: %s: %v: %s", script, err, out)
	}
}

// spec is a sandbox for a row.
func spec(tools, gocache, dir string, env []string) engine.Spec {
	s := engine.Spec{Keep: true, Env: env, FS: engine.FS{Workspace: dir,
		Mounts: []engine.Mount{{Source: gocache, Target: gocache}}}} // which all share: it takes minutes to fill
	if tools != "" {
		s.FS.Mounts = append(s.FS.Mounts, engine.Mount{Source: tools, Target: tools, ReadOnly: true})
	}
	for _, name := range []string{"go", "cargo"} {
		if root := toolchain(name); root != "" && !strings.HasPrefix(root, "/usr/") {
			s.FS.Mounts = append(s.FS.Mounts, engine.Mount{Source: root, Target: root, ReadOnly: true})
		}
	}
	return s
}

// names are the first two levels of a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, pattern := range []string{"*", ".*", "*/*", "*/.*", ".git/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			list = append(list, strings.TrimPrefix(f, dir+"/"))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// volatile are names that a tool makes as it likes, or that only the host's has.
func volatile(name string) bool {
	return strings.HasPrefix(name, ".git/") && !strings.Contains(name, "tegmen") && !strings.HasSuffix(name, "commondir") ||
		strings.Contains(name, "/tmp") || strings.HasPrefix(name, "m2")
}

func TestTools(t *testing.T) {
	eng := testbox.Open(t)
	// The host's own tools are the ordinary user's affair where both run this.
	twice := testenv.Twice()
	gocache := filepath.Join(testenv.Dir(t), "gocache")
	if err := os.Mkdir(gocache, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			need(t, r)
			tools := ""
			if r.needs == "python" || r.needs == "npm" {
				tools, _ = fetched() // registries has them
			}
			env := environment(t, tools, gocache)
			plain := project(t, r, env)
			if r.where != inside && !twice {
				onHost(t, plain, env, r.script)
			}

			dir := project(t, r, env)
			box := testbox.Start(t, eng, spec(tools, gocache, dir, env))
			cmd := box.CommandContext(testbox.Within(t, 2*time.Minute), "sh", "-ec", r.script)
			res, err := cmd.Run()
			if err != nil || res.Outcome != engine.OutcomeOK {
				t.Fatalf("inside: %v, %+v\n%s%s", err, res.Outcome, res.Stdout, res.Stderr)
			}
			for _, h := range res.Held {
				if h.Action == engine.HeldMoved {
					t.Errorf("held back: %s", h.Path)
				}
			}
			if err := box.Close(); err != nil {
				t.Fatal(err)
			}
			got, want := names(t, dir), names(t, plain)
			if r.where == inside || twice {
				want = got // only what is ours must not be there
			}
			if i := slices.IndexFunc(got, func(name string) bool { return strings.Contains(name, "tegmen") }); i >= 0 {
				t.Errorf("left: %s", got[i])
			}
			for _, name := range got {
				if !slices.Contains(want, name) && !volatile(name) {
					t.Errorf("left: %s", name)
				}
			}
			for _, name := range want {
				if !slices.Contains(got, name) && !volatile(name) {
					t.Errorf("missing: %s", name)
				}
			}

			if r.where == inside || twice {
				return
			}
			// The same on the host, while a sandbox lives there.
			beside := project(t, r, env)
			live := testbox.Start(t, eng, spec(tools, gocache, beside, env))
			read, write := io.Pipe()
			waiting := live.Command("cat")
			waiting.Stdin = read
			if err := waiting.Start(); err != nil {
				t.Fatal(err)
			}
			onHost(t, beside, env, r.script)
			_ = write.Close()
			if _, err := waiting.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A program of the host that lists a directory in which sandboxes come and go never sees a name of ours.
func TestNothingAppears(t *testing.T) {
	testenv.Long(t)
	dir := project(t, row{setup: "touch a"}, []string{"PATH=" + os.Getenv("PATH")})
	eng := testbox.Open(t)
	stop, seen := make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(seen)
		for {
			select {
			case <-stop:
				return
			default:
			}
			entries, err := os.ReadDir(dir)
			if err == nil && len(entries) != 1 {
				for _, e := range entries {
					if e.Name() != "a" {
						seen <- e.Name()
						return
					}
				}
			}
		}
	}()
	for range 250 {
		boxes := make([]*engine.Sandbox, 4)
		for i := range boxes {
			var err error
			if boxes[i], err = eng.Start(t.Context(), engine.Spec{FS: engine.FS{Workspace: dir}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range boxes {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	if name, ok := <-seen; ok {
		t.Errorf("seen: %s", name)
	}
}
