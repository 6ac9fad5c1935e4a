//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A kernel is a package of Debian, unpacked but not installed.
type kernel struct {
	version string // as it was asked for: 6.12
	arch    string // Go's name, and Debian's
	image   string // what QEMU boots
	modules string // the directory with modules.builtin
}

// wanted are the parts of a package that the guest needs.
var wanted = []string{"./boot/vmlinuz-*", "./lib/modules/*/modules.builtin", "./lib/modules/*/kernel/fs/*",
	"./lib/modules/*/kernel/net/9p/*", "./lib/modules/*/kernel/drivers/virtio/*", "./lib/modules/*/kernel/drivers/char/*"}

// fetch returns the newest package of a version, from a directory of the cache. It is downloaded once.
func (l *lane) fetch(version string) (kernel, error) {
	name, err := l.resolve(version)
	if err != nil { // the lists are missing, or too old
		if err := l.apt("", "apt-get", "update"); err != nil {
			return kernel{}, err
		}
		if name, err = l.resolve(version); err != nil {
			return kernel{}, err
		}
	}
	dir := filepath.Join(l.cache, name)
	if _, err := os.Stat(dir); err != nil {
		if err := l.download(name, dir); err != nil {
			return kernel{}, err
		}
	}
	k := kernel{version, l.arch, filepath.Join(dir, "vmlinux"),
		filepath.Join(dir, "lib/modules", strings.TrimPrefix(name, "linux-image-"))}
	if _, err := os.Stat(k.image); err != nil {
		k.image = filepath.Join(dir, "boot", strings.Replace(name, "linux-image", "vmlinuz", 1))
	}
	return k, nil
}

// resolve finds the package of a version: through the meta-package of the version, or of the release.
func (l *lane) resolve(version string) (string, error) {
	for _, meta := range []string{"linux-image-" + version + "-" + l.arch, "linux-image-" + l.arch} {
		out, _ := l.aptCommand("apt-cache", "depends", meta).Output() // no output if there is none
		for _, word := range strings.Fields(string(out)) {
			if strings.HasPrefix(word, "linux-image-"+version+".") {
				return word, nil
			}
		}
	}
	return "", fmt.Errorf("apt knows no kernel %s for %s", version, l.arch)
}

// aptCommand returns an apt command. For another architecture it has package lists of its own, so that the system is
// not changed.
func (l *lane) aptCommand(name string, args ...string) *exec.Cmd {
	if l.arch != runtime.GOARCH {
		own := filepath.Join(l.cache, "apt-"+l.arch)
		args = append([]string{"-o=APT::Architecture=" + l.arch, "-o=APT::Architectures=" + l.arch, "-o=Dir::State=" + own,
			"-o=Dir::State::status=/dev/null", "-o=Dir::Cache=" + own}, args...)
	}
	return exec.CommandContext(l.ctx, name, args...)
}

func (l *lane) apt(dir, name string, args ...string) error {
	if l.arch != runtime.GOARCH {
		if err := os.MkdirAll(filepath.Join(l.cache, "apt-"+l.arch, "lists/partial"), 0o755); err != nil {
			return err
		}
	}
	cmd := l.aptCommand(name, args...)
	cmd.Dir = dir
	return quiet(cmd)
}

func (l *lane) download(name, dir string) error {
	tmp, err := os.MkdirTemp(l.cache, "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := l.apt(tmp, "apt-get", "download", name); err != nil {
		// The lists are older than the mirror.
		if err := errors.Join(l.apt("", "apt-get", "update"), l.apt(tmp, "apt-get", "download", name)); err != nil {
			return err
		}
	}
	tree := filepath.Join(tmp, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	unpack := exec.CommandContext(l.ctx, "sh", "-c",
		`dpkg-deb --fsys-tarfile "$0"_*.deb | tar -x -C tree --wildcards "$@"`, name)
	unpack.Args, unpack.Dir = append(unpack.Args, wanted...), tmp
	if err := quiet(unpack); err != nil {
		return err
	}
	if l.arch == "amd64" {
		if err := uncompress(tree); err != nil {
			return err
		}
	}
	return os.Rename(tree, dir) // whole, or not there
}

// uncompress extracts the kernel proper from an image compressed by xz. Emulated, the image would take five seconds
// for that at each boot.
func uncompress(tree string) error {
	images, err := filepath.Glob(filepath.Join(tree, "boot/vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return fmt.Errorf("images in the package: %q", images)
	}
	image, err := os.ReadFile(images[0])
	if err != nil {
		return err
	}
	at := bytes.Index(image, []byte("\xfd7zXZ\x00"))
	if at < 0 {
		return nil
	}
	cmd := exec.Command("xz", "-dc", "--single-stream") // something follows it
	cmd.Stdin, cmd.Stderr = bytes.NewReader(image[at:]), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("xz: %w", err)
	}
	return os.WriteFile(filepath.Join(tree, "vmlinux"), out, 0o644)
}

// quiet runs a command whose output matters only when it fails.
func quiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
