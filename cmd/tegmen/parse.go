package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// parseVolume is docker's -v SRC:DST[:ro|rw].
func parseVolume(v string) (engine.Mount, error) {
	m := engine.Mount{Type: engine.MountBind}
	parts := strings.Split(v, ":")
	if len(parts) == 3 {
		for _, option := range strings.Split(parts[2], ",") {
			switch option {
			case "ro":
				m.ReadOnly = true
			case "rw", "z", "Z", "cached", "delegated", "consistent", "nocopy", "private", "rprivate":
				// so it is, or of no meaning here
			case "shared", "rshared", "slave", "rslave":
				return m, fmt.Errorf("option %q: a sandbox's mounts are always private: leave it out", option)
			default:
				return m, fmt.Errorf("option %q: use ro or rw, or for paths with colons --mount", option)
			}
		}
		parts = parts[:2]
	}
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return m, fmt.Errorf("use SRC:DST[:ro], or for paths with colons --mount type=bind,source=…,target=…")
	}
	m.Source, m.Target = parts[0], parts[1]
	if m.Source == "." || m.Source == ".." || strings.HasPrefix(m.Source, "./") || strings.HasPrefix(m.Source, "../") {
		at, err := filepath.Abs(m.Source) // as docker has it: what begins otherwise would be a volume
		if err != nil {
			return m, err
		}
		m.Source = at
	}
	return m, checkPaths(m)
}

// parseMount is docker's --mount: fields separated by commas, each quoted as CSV if it
// contains one.
func parseMount(v string) (engine.Mount, error) {
	var m engine.Mount
	fields, err := csv.NewReader(strings.NewReader(v)).Read()
	if errors.Is(err, io.EOF) {
		return m, fmt.Errorf("use type=bind,source=…,target=…")
	}
	if err != nil {
		return m, fmt.Errorf("%w; use type=bind,source=…,target=…", err)
	}
	for _, f := range fields {
		key, value, hasValue := strings.Cut(f, "=")
		switch key {
		case "type":
			m.Type = engine.MountType(value)
		case "source", "src":
			m.Source = value
		case "target", "dst", "destination":
			m.Target = value
		case "readonly", "ro":
			m.ReadOnly = true
			if hasValue {
				if m.ReadOnly, err = strconv.ParseBool(value); err != nil {
					err = fmt.Errorf("use true or false")
				}
			}
		case "tmpfs-size":
			m.Size, err = parseBytes(value)
		case "tmpfs-mode":
			m.Mode, err = parseMode(value)
		default:
			err = fmt.Errorf("unknown field")
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", f, err)
		}
	}
	if m.Type == "" {
		return m, fmt.Errorf("add type=bind or type=tmpfs")
	}
	return m, checkPaths(m)
}

// parseTmpfs is docker's --tmpfs DST[:size=…,mode=…,noexec].
func parseTmpfs(v string) (engine.Mount, error) {
	target, opts, _ := strings.Cut(v, ":")
	m := engine.Mount{Type: engine.MountTmpfs, Target: target}
	if opts == "" {
		return m, checkPaths(m)
	}
	for _, f := range strings.Split(opts, ",") {
		key, value, _ := strings.Cut(f, "=")
		var err error
		switch key {
		case "size":
			m.Size, err = parseBytes(value)
		case "mode":
			m.Mode, err = parseMode(value)
		case "noexec":
			m.NoExec = true
		case "exec":
			m.NoExec = false
		case "rw", "nosuid", "nodev": // so it is
		default:
			err = fmt.Errorf("use size=, mode= or noexec")
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", f, err)
		}
	}
	return m, checkPaths(m)
}

func checkPaths(m engine.Mount) error {
	switch {
	case m.Type == engine.MountBind && m.Source == "":
		return fmt.Errorf("name a source")
	case m.Target == "":
		return fmt.Errorf("name a target")
	case path.Clean(m.Target) == "/":
		return fmt.Errorf("use --rootfs to replace the root")
	}
	return nil
}

func parseMode(v string) (uint32, error) {
	n, err := strconv.ParseUint(v, 8, 32)
	if err != nil || n == 0 || n > 0o1777 {
		return 0, fmt.Errorf("use octal permission bits such as 1777")
	}
	return uint32(n), nil
}

// parseBytes takes docker's sizes: a number with the suffix b, k, m or g.
func parseBytes(v string) (engine.Bytes, error) {
	num, unit := strings.ToLower(v), engine.Bytes(1)
	if n := strings.TrimSuffix(num, "ib"); n != num { // 64MiB
		num = n
	} else if n := strings.TrimSuffix(num, "b"); n != num {
		num = n
	}
	for suffix, u := range map[string]engine.Bytes{"k": engine.KiB, "m": engine.MiB, "g": engine.GiB} {
		if n := strings.TrimSuffix(num, suffix); n != num {
			num, unit = n, u
			break
		}
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("use a size above zero such as 64m or 2g")
	}
	return engine.Bytes(n) * unit, nil
}

func parseCount(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("use a number of 1 or more")
	}
	return n, nil
}

func parseCPUs(v string) (float64, error) {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || !(n > 0) || n > 1e6 {
		return 0, fmt.Errorf("use a number above zero such as 1.5")
	}
	return n, nil
}

// parseTime takes seconds, as timeout(1) does, or a Go duration.
func parseTime(v string) (time.Duration, error) {
	if v == "none" {
		return engine.UnlimitedTime, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		d, err = time.ParseDuration(v + "s")
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("use a time above zero such as 10 or 1m30s, or none")
	}
	return d, nil
}

// parseDevice is docker's DEVICE:RATE. It merges the limits of one device.
func parseDevice(v string, l *engine.Limits, set func(*engine.IOLimit, string) error) error {
	i := strings.LastIndexByte(v, ':')
	if i <= 0 {
		return fmt.Errorf("use DEVICE:RATE, such as /dev/sda:1m")
	}
	device := v[:i]
	at := slices.IndexFunc(l.IO, func(l engine.IOLimit) bool { return l.Device == device })
	if at < 0 {
		at = len(l.IO)
		l.IO = append(l.IO, engine.IOLimit{Device: device})
	}
	return set(&l.IO[at], v[i+1:])
}

func parseRequirement(v string) (engine.Requirement, error) {
	limit, enforcer, ok := strings.Cut(v, "=")
	if !ok {
		return engine.Requirement{}, fmt.Errorf("use LIMIT=ENFORCER, such as memory=cgroup")
	}
	return engine.Requirement{Limit: engine.LimitName(limit), Enforcer: engine.EnforcerKind(enforcer)}, nil
}

func parseUser(v string) (*engine.User, error) {
	uid, gid, both := strings.Cut(v, ":")
	if !both {
		gid = uid
	}
	u, err1 := strconv.ParseUint(uid, 10, 32)
	g, err2 := strconv.ParseUint(gid, 10, 32)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("use UID or UID:GID, as numbers")
	}
	return &engine.User{UID: int(u), GID: int(g)}, nil
}

// parseUlimit is docker's --ulimit NAME=SOFT[:HARD], with both equal: a soft limit that
// the guest may raise limits nothing.
func parseUlimit(v string, l *engine.Limits) error {
	name, value, _ := strings.Cut(v, "=")
	if soft, hard, both := strings.Cut(value, ":"); both {
		if soft != hard {
			return fmt.Errorf("the soft and the hard limit must be equal: use %s=%s", name, hard)
		}
		value = soft
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("use NAME=N")
	}
	if n == 0 && name != "core" {
		return fmt.Errorf("%s=0 lets no program start", name)
	}
	switch name {
	case "nofile":
		l.Files = int(n)
	case "nproc":
		l.Pids = int(n)
	case "fsize":
		l.FileSize = engine.Bytes(n)
	case "as":
		l.AddressSpace = engine.Bytes(n)
	case "cpu":
		if n > math.MaxInt64/int64(time.Second) {
			return fmt.Errorf("too large")
		}
		l.CPUTime = time.Duration(n) * time.Second
	case "core":
		if n != 0 {
			return fmt.Errorf("core dumps are always off: use core=0")
		}
	default:
		return fmt.Errorf("%q is unknown: use nofile, nproc, fsize, cpu, as or core", name)
	}
	return nil
}

// envFlag takes a variable of the command line. It refuses what stands there by mistake: a
// flag in the place of the variable, or nothing, which is a shell's variable that is not set.
func envFlag(v string) error {
	switch {
	case v == "" || v[0] == '=':
		return errors.New("use NAME=value, or NAME for the host's value")
	case v[0] == '-' && !strings.Contains(v, "="):
		return errors.New("a flag stands in the place of the variable: use NAME=value, or NAME for the host's value")
	}
	return nil
}

// parseEnv is docker's: NAME alone stands for the host's value. It reports false if the
// host has none.
func parseEnv(v string) (string, bool) {
	if strings.Contains(v, "=") {
		return v, true
	}
	value, ok := os.LookupEnv(v)
	return v + "=" + value, ok
}

func readEnvFile(name string) ([]string, error) {
	b, err := readFile(name)
	if err != nil {
		return nil, err
	}
	var env []string
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\ufeff")) {
		number++
		line = strings.TrimRight(strings.TrimLeft(line, " \t"), "\r\n")
		if rest, ok := strings.CutPrefix(line, "export"); ok && strings.TrimLeft(rest, " \t") != rest {
			line = strings.TrimLeft(rest, " \t") // the file is for shells as well
		}
		if line == "" || line[0] == '#' {
			continue
		}
		variable, _, _ := strings.Cut(line, "=")
		if variable == "" || strings.ContainsAny(variable, " \t") || strings.ContainsRune(line, 0) {
			return nil, fmt.Errorf("%s: line %d: %.100q: use NAME=value", name, number, line)
		}
		if kv, ok := parseEnv(line); ok {
			env = append(env, kv)
		}
	}
	return env, nil
}

// hostDir makes a relative path absolute. It refuses an empty one: that is a variable
// that was not set, and must not become the current directory.
func hostDir(v string) (string, error) {
	if v == "" {
		return "", fmt.Errorf("name a directory")
	}
	return filepath.Abs(v)
}

func insidePath(v string) (string, error) {
	if !path.IsAbs(v) {
		return "", fmt.Errorf("use an absolute path")
	}
	return v, nil
}

// otherNames are what people call languages.
var otherNames = map[string]string{"py": "python", "python3": "python", "js": "node", "javascript": "node",
	"nodejs": "node", "shell": "sh"}

func parseLanguage(v string) (string, error) {
	if v == "ts" || v == "typescript" {
		return "", errors.New(noTypeScript)
	}
	if name, ok := otherNames[v]; ok {
		return name, nil
	}
	if !slices.Contains(engine.Languages(), v) {
		return "", fmt.Errorf("use one of %s", strings.Join(engine.Languages(), ", "))
	}
	return v, nil
}

const noTypeScript = "TypeScript is not supported: compile it to JavaScript first"

// parseVar takes NAME=VALUE. A VALUE that is not JSON is text.
func parseVar(v string, vars *map[string]any) error {
	name, value, ok := strings.Cut(v, "=")
	if !ok || name == "" {
		return errors.New("use NAME=VALUE")
	}
	if *vars == nil {
		*vars = make(map[string]any)
	}
	if json.Valid([]byte(value)) {
		(*vars)[name] = json.RawMessage(value)
	} else {
		(*vars)[name] = value
	}
	return nil
}

func hostFile(v string) (string, error) {
	if v == "" {
		return "", errors.New("name a file")
	}
	return v, nil
}
