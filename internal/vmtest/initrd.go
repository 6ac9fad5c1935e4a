//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// drivers are the modules that the guest needs. Their dependencies are added, and modules that are built in are left
// out.
var drivers = []string{"virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"}

// initrd returns an archive of this program as /init, the modules, and the orders. See
// Documentation/driver-api/early-userspace/buffer-format.rst of Linux.
func initrd(k kernel, init string, o orders) ([]byte, error) {
	var a archive
	program, err := os.ReadFile(init)
	if err != nil {
		return nil, err
	}
	a.file("init", 0o755, program)
	todo, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	a.file("orders.json", 0o644, todo)
	mods, err := modules(k.modules)
	if err != nil {
		return nil, err
	}
	a.entry("modules", 0o040755, nil)
	for i, m := range mods {
		a.file(fmt.Sprintf("modules/%02d.ko", i), 0o644, m)
	}
	a.entry("TRAILER!!!", 0, nil)
	return a.Bytes(), nil
}

type archive struct{ bytes.Buffer }

func (a *archive) file(name string, perm int, data []byte) { a.entry(name, 0o100000|perm, data) }

// entry writes no inode number: those tell hard links, and there are none.
func (a *archive) entry(name string, mode int, data []byte) {
	a.WriteString("070701")
	for _, field := range []int{0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0} {
		fmt.Fprintf(a, "%08x", field)
	}
	for _, part := range [][]byte{append([]byte(name), 0), data} {
		a.Write(part)
		a.Write(make([]byte, -a.Len()&3))
	}
}

// modules returns the drivers and their dependencies in loading order. depmod has not run for a package that is only
// unpacked, so each module file is asked.
func modules(dir string) (loaded [][]byte, err error) {
	builtin, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil, err
	}
	var there []string // those in the kernel, and those already taken
	for _, path := range strings.Fields(string(builtin)) {
		there = append(there, moduleName(path))
	}
	paths := make(map[string]string)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(e.Name(), ".ko") {
			paths[moduleName(path)] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var add func(name string) error
	add = func(name string) error {
		if slices.Contains(there, name) {
			return nil
		}
		there = append(there, name)
		text, needs, err := readModule(paths[name])
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, other := range needs {
			if err := add(other); err != nil {
				return err
			}
		}
		loaded = append(loaded, text)
		return nil
	}
	for _, name := range drivers {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// moduleName returns the name that dependencies use: a file's name may have dashes.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func readModule(path string) (text []byte, needs []string, err error) {
	if text, err = os.ReadFile(path); err != nil {
		return nil, nil, err
	}
	if strings.HasSuffix(path, ".xz") {
		if text, err = exec.Command("xz", "-dc", path).Output(); err != nil {
			return nil, nil, fmt.Errorf("xz: %w", err)
		}
	}
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, nil, errors.New("no .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(line, "depends="); ok && list != "" {
			needs = strings.Split(strings.ReplaceAll(list, "-", "_"), ",")
		}
	}
	return text, needs, nil
}
