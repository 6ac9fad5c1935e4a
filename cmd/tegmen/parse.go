package main

import (
	"encoding/csv"
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
	if len(parts) == 3 && (parts[2] == "ro" || parts[2] == "rw") {
		m.ReadOnly = parts[2] == "ro"
		parts = parts[:2]
	}
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return m, fmt.Errorf("want SRC:DST[:ro]; a path with a colon goes into --mount type=bind,source=…,target=…")
	}
	m.Source, m.Target = parts[0], parts[1]
	return m, nil
}

// parseMount is docker's --mount: fields separated by commas, each quoted as
// CSV when it contains one.
func parseMount(v string) (engine.Mount, error) {
	var m engine.Mount
	fields, err := csv.NewReader(strings.NewReader(v)).Read()
	if errors.Is(err, io.EOF) {
		return m, fmt.Errorf("want type=bind,source=…,target=…")
	}
	if err != nil {
		return m, fmt.Errorf("%w; want type=bind,source=…,target=…", err)
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
					err = fmt.Errorf("want true or false")
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
		return m, fmt.Errorf("type=bind or type=tmpfs is missing")
	}
	return m, nil
}

// parseTmpfs is docker's --tmpfs DST[:size=…,mode=…].
func parseTmpfs(v string) (engine.Mount, error) {
	target, opts, _ := strings.Cut(v, ":")
	m := engine.Mount{Type: engine.MountTmpfs, Target: target}
	if opts == "" {
		return m, nil
	}
	for _, f := range strings.Split(opts, ",") {
		key, value, _ := strings.Cut(f, "=")
		var err error
		switch key {
		case "size":
			m.Size, err = parseBytes(value)
		case "mode":
			m.Mode, err = parseMode(value)
		default:
			err = fmt.Errorf("want size= or mode=")
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", f, err)
		}
	}
	return m, nil
}

func parseMode(v string) (uint32, error) {
	n, err := strconv.ParseUint(v, 8, 32)
	if err != nil || n == 0 || n > 0o1777 {
		return 0, fmt.Errorf("want octal permission bits, as 1777")
	}
	return uint32(n), nil
}

// parseBytes takes docker's sizes: a number with b, k, m or g behind it.
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
		return 0, fmt.Errorf("want a size such as 64m or 2g")
	}
	return engine.Bytes(n) * unit, nil
}

func parseCount(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("want a number from 1 on")
	}
	return n, nil
}

func parseCPUs(v string) (float64, error) {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || !(n > 0) || n > 1e6 {
		return 0, fmt.Errorf("want a number such as 1.5")
	}
	return n, nil
}

// parseTime takes seconds, as timeout(1) does, or a Go duration.
func parseTime(v string) (time.Duration, error) {
	if v == "none" {
		return engine.Unlimited, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		d, err = time.ParseDuration(v + "s")
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("want a time above zero such as 10, 1m30s, or none")
	}
	return d, nil
}

// parseDevice is docker's DEVICE:RATE. What is said of one device comes together.
func parseDevice(v string, l *engine.Limits, set func(*engine.IOLimit, string) error) error {
	i := strings.LastIndexByte(v, ':')
	if i <= 0 {
		return fmt.Errorf("want DEVICE:RATE, as /dev/sda:1m")
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
		return engine.Requirement{}, fmt.Errorf("want LIMIT=ENFORCER, as memory=cgroup")
	}
	return engine.Requirement{Limit: limit, Enforcer: enforcer}, nil
}

func parseUser(v string) (*engine.User, error) {
	uid, gid, both := strings.Cut(v, ":")
	if !both {
		gid = uid
	}
	u, err1 := strconv.ParseUint(uid, 10, 32)
	g, err2 := strconv.ParseUint(gid, 10, 32)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("want UID or UID:GID as numbers")
	}
	return &engine.User{UID: int(u), GID: int(g)}, nil
}

// parseUlimit is docker's --ulimit NAME=SOFT[:HARD], for one value: a soft
// limit that the guest may raise limits nothing.
func parseUlimit(v string, l *engine.Limits) error {
	name, value, _ := strings.Cut(v, "=")
	if soft, hard, both := strings.Cut(value, ":"); both {
		if soft != hard {
			return fmt.Errorf("soft and hard limit have to be the same: %s=%s", name, hard)
		}
		value = soft
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("want NAME=N")
	}
	if n == 0 && name != "core" {
		return fmt.Errorf("%s=0 would keep every program from starting", name)
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
			return fmt.Errorf("core is always 0")
		}
	default:
		return fmt.Errorf("%q is not one of nofile, nproc, fsize, cpu, as, core", name)
	}
	return nil
}

// parseEnv is docker's: NAME alone stands for the host's value, if there is
// one.
func parseEnv(v string) (string, bool) {
	if strings.Contains(v, "=") {
		return v, true
	}
	value, ok := os.LookupEnv(v)
	return v + "=" + value, ok
}

func readEnvFile(name string) ([]string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var env []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(strings.TrimLeft(line, " \t"), "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if kv, ok := parseEnv(line); ok {
			env = append(env, kv)
		}
	}
	return env, nil
}

// hostDir takes a relative path, too. An empty one is a variable that was not
// set: it must not become the current directory.
func hostDir(v string) (string, error) {
	if v == "" {
		return "", fmt.Errorf("want a directory")
	}
	return filepath.Abs(v)
}

func insidePath(v string) (string, error) {
	if !path.IsAbs(v) {
		return "", fmt.Errorf("want an absolute path")
	}
	return v, nil
}
