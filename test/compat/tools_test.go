//go:build linux

package compat

import (
	_ "embed"
	"os"
	"path/filepath"
	"testing"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
)

//go:embed testdata/work.c
var workSource string

// TestTools runs tools and interpreters that use what a kernel offers: sockets, terminals, locks, threads, watches.
// gdb and strace are not among them: the default filter refuses tracing.
func TestTools(t *testing.T) {
	eng := open(t)
	for _, w := range []struct {
		name, script string
		needs        []string
	}{
		{"kernel", "cat >work.c <<'END'\n" + workSource + "END\n" + cWork, []string{"gcc"}},
		{"sanitizers", sanitizers, []string{"gcc"}},
		{"jobserver", jobserver, []string{"make"}},
		{"sqlite3", sqlite3, []string{"sqlite3"}},
		{"http", httpLoopback, []string{"curl", "python3"}},
		{"ssh-keygen", sshKeygen, []string{"ssh-keygen"}},
		{"openssl", openssl, []string{"openssl"}},
		{"perl", perl, []string{"perl"}},
		{"tmux", tmux, []string{"tmux"}},
		{"script", typescript, []string{"script"}},
		{"node", nodeServers, []string{"node"}},
		{"python", python(asyncServers), []string{"python3", "openssl"}},
		{"shell", shell, nil},
		{"zip", zipped, []string{"zip", "unzip", "jq"}},
		{"accounts", accounts, nil},
		{"busybox", busybox, []string{"busybox"}},
	} {
		t.Run(w.name, func(t *testing.T) {
			need(t, w.needs...)
			same(t, eng, engine.Spec{}, w.script)
		})
	}
	t.Run("xattrs", func(t *testing.T) { testXattrs(t, eng) })
	t.Run("message queues", func(t *testing.T) { testQueues(t, eng) })
	t.Run("race detector", func(t *testing.T) {
		asUser(t)
		testRaceDetector(t, eng)
	})
}

// testXattrs uses one file system on both sides. Not every file system has user attributes; a script that finds none
// says so.
func testXattrs(t *testing.T, eng *engine.Engine) {
	need(t, "tar", "python3")
	want := run(t, func(args ...string) (ended, error) { return outside(directory(t), args...) }, xattrs)
	box := testbox.Start(t, eng, engine.Spec{FS: engine.FS{Workspace: directory(t)}})
	got := run(t, func(args ...string) (ended, error) { return inside(box, args...) }, xattrs)
	equal(t, got, want)
}

// testQueues makes a POSIX message queue. The Landlock domain refuses it: no mount of its file system exists that a
// rule could name.
func testQueues(t *testing.T, eng *engine.Engine) {
	need(t, "python3")
	host, err := engine.ProbeHost()
	if err != nil {
		t.Fatal(err)
	}
	want := "ok\n"
	if out := run(t, func(args ...string) (ended, error) { return outside(directory(t), args...) },
		python(queue)); string(out.out) != want {
		t.Fatalf("outside: %s", out.text())
	}
	if host.Landlock > 0 {
		want = "EACCES\n"
	}
	box := testbox.Start(t, eng, engine.Spec{})
	if in := run(t, func(args ...string) (ended, error) { return inside(box, args...) },
		python(queue)); string(in.out) != want {
		t.Errorf("inside: %s, want %s", in.text(), want)
	}
}

// testRaceDetector runs a Go test that was built for the race detector, whose runtime has its own address space
// layout.
func testRaceDetector(t *testing.T, eng *engine.Engine) {
	need(t, "go", "gcc")
	dir := testenv.Dir(t)
	for name, text := range raceSources {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=1"}
	built := run(t, func(args ...string) (ended, error) { return own(env, args...) },
		"cd '"+dir+"' && go test -race -c -o race.test .")
	if built.code != 0 {
		t.Fatalf("exit code %d\n%s", built.code, built.text())
	}
	spec := engine.Spec{FS: engine.FS{Mounts: []engine.Mount{{Type: engine.MountBind, Source: dir, Target: dir,
		ReadOnly: true}}}}
	same(t, eng, spec, "dir="+dir+"\n"+raceRun)
}
