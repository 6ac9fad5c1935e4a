//go:build linux

package engine_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/testbox"
	"github.com/tegmen-dev/tegmen/internal/testenv"
	"github.com/tegmen-dev/tegmen/rootfs"
)

// viewDir makes a directory that the host's view shows, unlike /tmp, and that guests of root can pass into.
func viewDir(t *testing.T) string {
	t.Helper()
	testenv.Need(t, testenv.UserNS)
	here, _ := os.Getwd()
	candidates := []string{os.Getenv("HOME"), here}
	if os.Geteuid() == 0 {
		candidates = []string{"/srv"}
	}
	var dir string
	for _, c := range candidates {
		real, err := filepath.EvalSymlinks(c)
		if err != nil || slices.ContainsFunc([]string{"/tmp", "/var/tmp", "/run"}, func(p string) bool { return rootfs.Within(p, real) }) {
			continue
		}
		if dir, err = os.MkdirTemp(real, "tegmen-view-"); err == nil {
			break
		}
	}
	testenv.Need(t, testenv.Try("a directory outside /tmp", func() error {
		if dir == "" {
			return errors.New("none that can be written to")
		}
		return nil
	}))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, at := range []string{dir, filepath.Join(dir, "home"), filepath.Join(dir, "home", "proj")} {
		_ = os.Mkdir(at, 0o755)
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testbox.GiveTo(t, dir, testbox.Nobody)
	return dir
}

// put makes a file of the host, and its parents.
func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

// openView opens an engine for which home is the home directory. mounts are added to the host's.
func openView(t *testing.T, home string, mounts ...rootfs.HostMount) *engine.Engine {
	t.Helper()
	return testbox.OpenOn(t, func(h *engine.Host) {
		list := h.Mounts
		h.Home, h.Path = home, filepath.Join(home, "bin")+":relative:/tmp/bin:/usr/bin:/bin"
		h.Mounts = func() ([]rootfs.HostMount, error) {
			all, err := list()
			return append(all, mounts...), err
		}
	})
}

func hostView(workspace string) engine.Spec {
	return engine.Spec{FS: engine.FS{View: engine.ViewHost, Workspace: workspace}, Keep: true}
}

// says runs a script that may fail, and returns what it prints.
func says(t *testing.T, sandbox *engine.Sandbox, script string) string {
	t.Helper()
	res := testbox.Run(t, sandbox, "sh", "-c", "{ "+script+"\n} 2>&1")
	return strings.TrimSpace(string(res.Stdout))
}

func TestHostView(t *testing.T) {
	dir := viewDir(t)
	home, proj := filepath.Join(dir, "home"), filepath.Join(dir, "home", "proj")
	put(t, filepath.Join(home, "bin/mine"), "#!/bin/sh\necho my tool\n", 0o755)
	put(t, filepath.Join(home, ".gitconfig"), "[user]\n\tname = Me\n", 0o600)
	put(t, filepath.Join(home, ".cache/tool/old"), "old", 0o600)
	put(t, filepath.Join(dir, "shared/lib"), "lib", 0o644)
	testbox.GiveTo(t, dir, testbox.Nobody)
	sandbox := testbox.Start(t, openView(t, home), hostView(proj))
	for _, c := range []struct{ script, want string }{
		{"mine", "my tool"},
		{"cat ~/.gitconfig ~/.cache/tool/old " + dir + "/shared/lib | tail -n 1", "oldlib"},
		{"echo $HOME", home},
		{"pwd", proj},
		{"echo $PATH | cut -d: -f1-2", home + "/bin:/usr/bin"},
		{"getent passwd $(id -u) | cut -d: -f6", home},
		{"echo new >~/.cache/tool/new && rm ~/.gitconfig && mkdir ~/.ssh && cat ~/.cache/tool/new", "new"},
		{"echo made >made && cat " + proj + "/made", "made"},
		{"touch " + dir + "/shared/lib || echo no", "no"},
		{"touch " + dir + "/x /opt/x /var/x /x >/dev/null && echo yes || echo no", "no"},
		{"ls -A /run /tmp /var/tmp | grep -v :$ | grep .", ""},
		{"ls /proc | grep -c '^[0-9]' | grep -c '^[0-9]$'", "1"},
		{"cat /etc/shadow /etc/machine-id >/dev/null && echo yes || echo no", "no"},
	} {
		if got := says(t, sandbox, c.script); !strings.HasSuffix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q; want %q", c.script, got, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".cache/tool/new")); err == nil {
		t.Error("a change in HOME reached the host")
	}
	for _, path := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(proj, "made")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// A guest that knows where a secret is cannot read it by any name, whatever the host does to the file meanwhile.
func TestHostViewHidesSecrets(t *testing.T) {
	dir := viewDir(t)
	home, proj := filepath.Join(dir, "home"), filepath.Join(dir, "home", "proj")
	var secrets []string
	for _, p := range engine.SecretPaths(home) {
		if rootfs.Within(home, p) && filepath.Base(p) != ".age" && filepath.Base(p) != ".netrc" {
			secrets = append(secrets, p+"/in", p)
			put(t, p+"/in", "SECRET", 0o644)
		}
	}
	put(t, filepath.Join(dir, "keys/netrc"), "SECRET", 0o644)
	put(t, filepath.Join(dir, "keys/public"), "public", 0o644)
	put(t, filepath.Join(dir, "again/.ssh/in"), "SECRET", 0o644) // the same file system, as the list of mounts has it
	put(t, filepath.Join(dir, "extra/token"), "SECRET", 0o644)
	put(t, filepath.Join(home, "mail"), "SECRET", 0o644)
	err := errors.Join(os.Symlink(filepath.Join(dir, "keys/netrc"), filepath.Join(home, ".netrc")),
		os.Symlink(home+"/.config", filepath.Join(dir, "config")), os.Symlink(home+"/.ssh/in", filepath.Join(proj, "link")))
	if err != nil {
		t.Fatal(err)
	}
	testbox.GiveTo(t, dir, testbox.Nobody)
	again := rootfs.HostMount{Path: filepath.Join(dir, "again"), Root: home, Type: "ext4", Dev: "1:1"}
	whole := rootfs.HostMount{Path: home, Root: home, Type: "ext4", Dev: "1:1"}
	spec := hostView(proj)
	spec.FS.Hidden = []string{filepath.Join(dir, "extra/token"), filepath.Join(home, "mail")}
	for name, eng := range map[string]*engine.Engine{
		"one file system": openView(t, home), "mounted twice": openView(t, home, whole, again),
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := testbox.Start(t, eng, spec)
			var read strings.Builder
			for _, p := range append(secrets, home+"/.netrc", dir+"/keys/netrc", dir+"/extra/token", home+"/mail",
				dir+"/config/gh/in", dir+"/config/../.ssh/in", "/proc/self/root"+home+"/.ssh/in", "/proc/self/cwd/../.ssh/in") {
				read.WriteString("x=; { read -r x; } <'" + p + "'; echo \"$x\"; [ -e '" + p + "' ] && echo THERE '" + p + "'\n")
			}
			if name == "mounted twice" {
				read.WriteString("cat " + dir + "/again/.ssh/in\n")
			}
			read.WriteString("cat link; ln ~/.ssh/in hard; cat hard; ln -s ~/.ssh soft; cat soft/in\n")
			read.WriteString("mkdir ~/.aws; rmdir ~/.aws; cat ~/.aws/in; touch ~/.vault-token; rm ~/.vault-token; cat ~/.vault-token/in\n")
			read.WriteString("mv ~/.config ~/moved; cat ~/moved/gh/in; grep -r SECRET ~ " + dir + "/keys " + dir + "/extra")
			if got := says(t, sandbox, read.String()); strings.Contains(got, "SECRET") || strings.Contains(got, "THERE") {
				t.Errorf("%s", got)
			}
			if got := says(t, sandbox, "cat "+dir+"/keys/public"); got != "public" {
				t.Errorf("beside a secret: %q", got)
			}
			// As git and npm do it when they store a password.
			put(t, filepath.Join(home, "renamed"), "SECRET", 0o644)
			err := errors.Join(os.Chmod(filepath.Join(home, "renamed"), 0o644), os.Rename(filepath.Join(home, "renamed"), dir+"/extra/token"))
			if err != nil {
				t.Fatal(err)
			}
			script := "cat " + dir + "/extra/token"
			if h, err := engine.ProbeHost(); err == nil && box.KernelAtLeast(h.Kernel, "6.6") {
				put(t, filepath.Join(home, ".age/key"), "SECRET", 0o644) // which was not there at the start
				defer os.RemoveAll(filepath.Join(home, ".age"))
				script += "; cat ~/.age/key"
			}
			if got := says(t, sandbox, script); strings.Contains(got, "SECRET") {
				t.Errorf("what the host makes: %s", got)
			}
		})
	}
}

// A read-only mount would let a guest connect to any socket that its user may: to docker's, ssh's or gpg's agent, a database.
func TestHostViewReachesNoListener(t *testing.T) {
	testenv.Need(t, testenv.Program("python3"))
	dir := viewDir(t)
	home, proj := filepath.Join(dir, "home"), filepath.Join(dir, "home", "proj")
	if err := os.Mkdir(filepath.Join(dir, "daemon"), 0o755); err != nil {
		t.Fatal(err)
	}
	testbox.GiveTo(t, dir, testbox.Nobody)
	sandbox := testbox.Start(t, openView(t, home), hostView(proj))
	for _, at := range []string{filepath.Join(home, "agent"), filepath.Join(dir, "daemon", "socket")} {
		socket, pipe := at+".s", at+".p"
		l, err := net.Listen("unix", socket)
		if err == nil {
			t.Cleanup(func() { l.Close() })
			err = errors.Join(os.Chmod(socket, 0o777), unix.Mkfifo(pipe, 0o666), os.Chmod(pipe, 0o666))
		}
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(pipe, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		if c, err := net.Dial("unix", socket); err != nil {
			t.Fatal("outside:", err)
		} else {
			c.Close()
		}
		script := testbox.Python(`
import errno, os, socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    print(errno.errorcode[socket.socket(socket.AF_UNIX, kind).connect_ex(%q)])
try: print(os.open(%q, os.O_WRONLY | os.O_NONBLOCK))
except OSError as e: print(errno.errorcode[e.errno])
`, socket, pipe)
		res := testbox.Run(t, sandbox, script[0], script[1:]...)
		got := strings.ReplaceAll(strings.Join(strings.Fields(string(res.Stdout)), " "), "EACCES", "no") // of Landlock
		got = strings.NewReplacer("ECONNREFUSED", "no", "ENXIO", "no").Replace(got)
		if got != "no no no" {
			t.Errorf("%s: %s %s", at, got, res.Stderr)
		}
	}
	// Programs inside can still talk to each other in HOME.
	inside := testbox.Python(`
import os, socket
l, c = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
l.bind(os.environ["HOME"] + "/own"); l.listen(); c.connect(os.environ["HOME"] + "/own"); print("connected")
`)
	if res := testbox.Run(t, sandbox, inside[0], inside[1:]...); string(res.Stdout) != "connected\n" {
		t.Errorf("inside: %s %s", res.Stdout, res.Stderr)
	}
}

// Where the host has mounts, their parents are taken apart.
func TestHostViewOfMounts(t *testing.T) {
	dir := viewDir(t)
	home, proj := filepath.Join(dir, "home"), filepath.Join(dir, "home", "proj")
	put(t, filepath.Join(home, "disk/file"), "file", 0o644)
	put(t, filepath.Join(home, ".npmrc"), "SECRET", 0o644)
	put(t, filepath.Join(home, ".bashrc"), "rc", 0o644)
	put(t, filepath.Join(home, "auto/never"), "never", 0o644)
	if err := os.Symlink("disk/file", filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	testbox.GiveTo(t, dir, testbox.Nobody)
	eng := openView(t, home, rootfs.HostMount{Path: home + "/disk", Root: "/", Type: "xfs", Dev: "1:1"},
		rootfs.HostMount{Path: home + "/auto", Root: "/", Type: "autofs", Dev: "1:2"})
	plan, err := eng.Compile(hostView(proj))
	if err != nil {
		t.Fatal(err)
	}
	if want := home + "/auto is not shown: its file system is autofs"; !strings.Contains(plan.String(), want) {
		t.Errorf("no %q in\n%s", want, plan)
	}
	sandbox := testbox.Start(t, eng, hostView(proj))
	got := says(t, sandbox, "cat ~/.bashrc ~/disk/file ~/link; ls -A ~/auto; cat ~/.npmrc; echo >~/new && echo >~/disk/new && echo >proj && echo end")
	if !strings.HasPrefix(got, "rcfilefile") || !strings.HasSuffix(got, "end") || strings.Contains(got, "SECRET") || strings.Contains(got, "never") {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(filepath.Join(home, "disk/new")); err == nil {
		t.Error("a change reached the host")
	}
}

// What is mounted can be seen, whatever holds it.
func TestHostViewShowsMounts(t *testing.T) {
	dir := viewDir(t)
	home, proj := filepath.Join(dir, "home"), filepath.Join(dir, "home", "proj")
	for _, name := range []string{".npmrc", ".ssh/known_hosts", ".ssh/id", ".aws/config"} {
		put(t, filepath.Join(home, name), name+"\n", 0o644)
	}
	testbox.GiveTo(t, dir, testbox.Nobody)
	spec := hostView(proj)
	for _, name := range []string{".npmrc", ".ssh/known_hosts", ".aws"} {
		at := filepath.Join(home, name)
		spec.FS.Mounts = append(spec.FS.Mounts, engine.Mount{Source: at, Target: at, ReadOnly: true})
	}
	sandbox := testbox.Start(t, openView(t, home), spec)
	if got := says(t, sandbox, "cd; cat .npmrc .ssh/known_hosts .aws/config; ls .ssh"); got != ".npmrc\n.ssh/known_hosts\n.aws/config\nknown_hosts" {
		t.Errorf("%q", got)
	}
}

func TestHostViewRefuses(t *testing.T) {
	dir := viewDir(t)
	home := filepath.Join(dir, "home")
	put(t, filepath.Join(home, ".netrc"), "", 0o644)
	testbox.GiveTo(t, dir, testbox.Nobody)
	eng := openView(t, home)
	for name, c := range map[string]struct {
		fs   engine.FS
		is   error
		says string
	}{
		"a secret in the workspace": {engine.FS{View: engine.ViewHost, Workspace: home}, engine.ErrInvalid, "it contains " + home + "/.netrc"},
		"hidden in the workspace": {engine.FS{View: engine.ViewHost, Workspace: home + "/proj", Hidden: []string{home + "/proj/.env"}},
			engine.ErrInvalid, "it contains " + home + "/proj/.env"},
		"hidden in /usr": {engine.FS{View: engine.ViewHost, Hidden: []string{"/usr/bin/env"}}, engine.ErrInvalid, "nothing in /usr can be hidden"},
		"a secret in a mount": {engine.FS{View: engine.ViewHost, Mounts: []engine.Mount{{Source: dir, Target: "/m", ReadOnly: true}}},
			engine.ErrInvalid, "it contains " + home + "/.netrc"},
		"no such view": {engine.FS{View: "all"}, engine.ErrInvalid, "neither system nor host"},
		"a root":       {engine.FS{View: engine.ViewHost, Root: dir}, engine.ErrInvalid, "root directory"},
	} {
		if _, err := eng.Compile(engine.Spec{FS: c.fs}); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Guests of root see what their user may see, not what root may; but for root's home, which is the caller's own.
func TestHostViewOfRoot(t *testing.T) {
	testenv.Need(t, testenv.Root)
	dir := viewDir(t)
	home, closed := filepath.Join(dir, "root"), filepath.Join(dir, "closed")
	for _, name := range []string{"root/.bashrc", "root/bin/tool", "root/.ssh/id", "closed/mount/file"} {
		put(t, filepath.Join(dir, name), name+" of root\n", 0o600)
	}
	if err := errors.Join(os.Mkdir(home+"/proj", 0o755), os.Chmod(home, 0o700), os.Chmod(closed, 0o700)); err != nil {
		t.Fatal(err)
	}
	mount := rootfs.HostMount{Path: closed + "/mount", Root: "/", Type: "ext4", Dev: "1:1"}
	script := "echo $HOME $PATH; cat " + home + "/.bashrc " + home + "/.ssh/id " + closed + "/mount/file; ls -R " + closed +
		"; cd " + home + "; echo mine >new; echo changed >.bashrc; cat new .bashrc; echo made >proj/made; echo $?"

	t.Run("shown", func(t *testing.T) {
		testenv.Need(t, testbox.IDMap(home))
		got := says(t, testbox.Start(t, openView(t, home, mount), hostView(home+"/proj")), script)
		if !strings.HasPrefix(got, home+" "+home+"/bin:/usr/bin:/bin:") || !strings.Contains(got, "root/.bashrc of root") ||
			!strings.HasSuffix(got, "mine\nchanged\n0") || strings.Contains(got, "id of root") || strings.Contains(got, "file of root") {
			t.Errorf("%s", got)
		}
		text, err := os.ReadFile(home + "/.bashrc")
		if _, gone := os.Stat(home + "/new"); err != nil || string(text) != "root/.bashrc of root\n" || gone == nil {
			t.Errorf("the host's file is %q, %v; its new one: %v", text, err, gone)
		}
		if uid := testbox.Owner(t, home+"/proj/made"); uid != 0 {
			t.Errorf("what the guest made belongs to %d", uid)
		}
	})
	t.Run("closed", func(t *testing.T) {
		eng := testbox.OpenOn(t, func(h *engine.Host) {
			h.Home = home
			h.TryIDMap = func(string) error { return unix.EINVAL }
		})
		err := errors.Join(os.RemoveAll(home+"/proj/made"), os.Chown(home+"/proj", 65534, 65534))
		if err != nil {
			t.Fatal(err)
		}
		// The workspace is there all the same.
		got := says(t, testbox.Start(t, eng, hostView(home+"/proj")), script)
		if !strings.HasPrefix(got, "/tmp ") || strings.Contains(got, "of root") || !strings.HasSuffix(got, "\n0") {
			t.Errorf("%s", got)
		}
	})
}
