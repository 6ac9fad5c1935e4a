package main

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// blamed is an error about a Spec, some of which is from a file and some from flags.
type blamed struct {
	error
	file       string
	base, spec any // the file's, and with the flags, as decoded JSON
}

func (b *blamed) Unwrap() error { return b.error }

// nameOf is a field in the file if it stands there, and the flag that sets it otherwise.
func (b *blamed) nameOf(field string) string {
	inFile, ok := find(b.base, field)
	used, _ := find(b.spec, field)
	if field != "" && ok && reflect.DeepEqual(inFile, used) {
		return b.file + ": " + field
	}
	return flagOf(field)
}

// tree is the JSON of a Spec; nil if it has none.
func tree(s engine.Spec) (v any) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	_ = json.Unmarshal(text, &v) // cannot fail
	return v
}

// find is what stands at a path, such as "fs.mounts[1].target".
func find(v any, path string) (any, bool) {
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(in) {
				return nil, false
			}
			v = in[i]
		}
		if v == nil {
			return nil, false
		}
	}
	return v, true
}

// blame says where the parts of the Spec come from that an error is about.
func (o *options) blame(err error) error {
	if err == nil || o.specFile == "" {
		return err
	}
	return &blamed{err, o.specFile, tree(o.base), tree(o.spec)}
}

// fieldFlags are the flags behind the fields of a Spec, by their paths in its JSON
// without indices. A path that is not here is shown as it is.
var fieldFlags = map[string]string{
	"name": "--name", "hostname": "--hostname", "user": "--user", "env": "--env", "vars": "--var",
	"fs.root": "--rootfs", "fs.overlay": "--overlay", "fs.mounts": "mount", // -v, --mount or --tmpfs
	"fs.workspace": "--workspace", "fs.workspace_mode": "--workspace mode", "fs.upper": "--workspace upper",
	"fs.allow_write": "--allow-write", "fs.protect": "--protect", "require": "--require", "degrade": "--degrade",
	"limits.wall_seconds": "--timeout", "limits.cpu_time_seconds": "--ulimit cpu",
	"limits.memory_bytes": "--memory", "limits.memory_high_bytes": "--memory-high",
	"limits.address_space_bytes": "--ulimit as", "limits.cpus": "--cpus", "limits.cpu_weight": "--cpu-weight",
	"limits.cpu_set": "--cpuset-cpus", "limits.io": "--device-…", "limits.pids": "--pids-limit",
	"limits.files": "--ulimit nofile", "limits.file_size_bytes": "--ulimit fsize", "limits.tmp_bytes": "--tmp-size",
	"limits.workspace_bytes": "--workspace size", "limits.tool_calls": "--tool-calls",
	"limits.tool_time_seconds": "--tool-timeout", "seccomp.profile": "--security-opt seccomp",
	"seccomp.policy": "seccomp policy", "seccomp.no_exec": "--no-exec", "seccomp.audit": "--audit",
	"fs.view": "--view", "fs.hidden": "--hide",
}

// flagOf is the flag that sets a field of a Spec.
func flagOf(field string) string {
	path, _, _ := strings.Cut(field, "[")
	if name, ok := fieldFlags[path]; ok {
		return name
	}
	return field
}
