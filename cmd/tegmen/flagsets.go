package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

func (o *options) fileFlags(f *flags) {
	fs := &o.spec.FS
	f.in("Files")
	f.value("SRC:DST[:ro]", "bind-mount SRC of the host at DST in the sandbox",
		appendTo(&fs.Mounts, parseVolume), "v", "volume")
	f.value("type=bind|tmpfs,source=…,target=…[,readonly]", "mount, with any characters in the paths",
		appendTo(&fs.Mounts, parseMount), "mount")
	f.value("DST[:size=64m,mode=1777,noexec]", "mount a private tmpfs at DST", appendTo(&fs.Mounts, parseTmpfs), "tmpfs")
	f.value("DIR[,mode=overlay][,size=64m|,upper=DIR]", "mount DIR writable at its own absolute path and start there; "+
		"size kills a sandbox that adds more; mode=overlay keeps the changes apart: in memory (default 256m) or in upper",
		func(v string) error { return parseWorkspace(v, &o.spec) }, "workspace")
	f.value("PATH", "allow changes to PATH of the workspace, although tools on the host execute it",
		appendTo(&fs.AllowWrite, verbatim), "allow-write")
	f.value("MODE", "what happens to such paths if they are new: watch (default) moves them aside, strict has "+
		"placeholders in their place, off protects nothing",
		setTo(&fs.Protect, func(v string) (engine.ProtectMode, error) { return engine.ProtectMode(v), nil }), "protect")
	if f.Name() != "plan" {
		f.yes(&o.commit, "with mode=overlay: apply the changes to the workspace if the program exits with 0", "commit")
		f.value("FILE", "with mode=overlay: write the changes as a patch to FILE, or to standard output if it is -",
			setTo(&o.diff, patchFile), "diff")
	}
	f.value("DIR", "use the root file system in DIR, read-only, instead of the host's system directories",
		setTo(&fs.Root, hostDir), "rootfs")
	f.yes(&fs.Overlay, "make --rootfs writable; the changes are discarded", "overlay")
	f.yes(&o.readOnly, "keep the root file system read-only, which is the default", "read-only")
	f.value("VIEW", "files of the host that can be read: system (default), or host: all that you can read, except keys "+
		"and passwords in their usual places; PATH and HOME are yours, and changes in HOME are discarded",
		setTo(&fs.View, func(v string) (engine.ViewMode, error) { return engine.ViewMode(v), nil }), "view")
	f.value("PATH", "with --view host: hide PATH and everything beneath it as well",
		appendTo(&fs.Hidden, filepath.Abs), "hide")
}

func (o *options) programFlags(f *flags) {
	s := &o.spec
	f.in("Program")
	env := []string{"e", "env"}
	if f.Name() == "code" {
		env = env[1:] // -e is a piece of code, as for python -c and node -e
	}
	f.value("NAME[=value]", "set a variable; without a value, pass on the host's", func(v string) error {
		if err := envFlag(v); err != nil {
			return err
		}
		if kv, ok := parseEnv(v); ok {
			s.Env = append(s.Env, kv)
		}
		return nil
	}, env...)
	f.value("FILE", "read environment variables from FILE", func(v string) error {
		env, err := readEnvFile(v)
		s.Env = append(s.Env, env...)
		return err
	}, "env-file")
	f.value("DIR", "start in DIR of the sandbox", setTo(&o.workdir, insidePath), "w", "workdir")
	f.value("UID[:GID]", "run as this user in the sandbox (default 1000:1000)", setTo(&s.User, parseUser), "u", "user")
	f.text(&s.Hostname, "NAME", "set the host name (default sandbox)", "hostname")
	f.text(&s.Name, "NAME", "label the sandbox in the host's list of processes", "name")
	if f.Name() == "run" || f.Name() == "code" {
		f.yes(&o.interactive, "pass on standard input", "i", "interactive")
	}
	if f.Name() == "run" {
		f.yes(&o.tty, "give the program a terminal", "t", "tty")
	}
}

func (o *options) limitFlags(f *flags) {
	l := &o.spec.Limits
	f.in("Limits")
	f.value("TIME", "kill the program after TIME: seconds, 1m30s, or none (default 1h)",
		setTo(&l.Wall, parseTime), "timeout")
	f.value("SIZE", "limit memory to SIZE (default half of the machine's)", setTo(&l.Memory, parseBytes), "m", "memory")
	f.value("N", "limit processes and threads to N (default 512)", setTo(&l.Pids, parseCount), "pids-limit")
	f.value("NAME=N", "set a resource limit: nofile, nproc, fsize, cpu, as or core",
		func(v string) error { return parseUlimit(v, l) }, "ulimit")
	f.value("SIZE", "limit each private tmpfs to SIZE (default 1g)", setTo(&l.Tmp, parseBytes), "tmp-size")
	f.value("LIMIT=ENFORCER", "refuse to run if another enforces the limit, as in memory=cgroup; tegmen plan lists both",
		appendTo(&o.spec.Require, parseRequirement), "require")
}

func (o *options) cgroupFlags(f *flags) {
	l := &o.spec.Limits
	f.in("Limits that need a cgroup")
	f.value("N", "limit to N CPUs at once", setTo(&l.CPUs, parseCPUs), "cpus")
	f.value("N", "get a share of busy CPUs with weight N, from 1 to 10000; other programs have 100",
		setTo(&l.CPUWeight, parseCount), "cpu-weight")
	f.text(&l.CPUSet, "CPUS", "run only on these CPUs, such as 0-2,5", "cpuset-cpus")
	f.value("SIZE", "slow the program down if it uses more than SIZE of memory",
		setTo(&l.MemoryHigh, parseBytes), "memory-high")
	for _, d := range []struct {
		name, value, usage string
		limit              func(*engine.IOLimit, string) error
	}{
		{"device-read-bps", "DEVICE:SIZE", "read at most SIZE a second",
			func(l *engine.IOLimit, v string) error { return setTo(&l.ReadBPS, parseBytes)(v) }},
		{"device-write-bps", "DEVICE:SIZE", "write at most SIZE a second",
			func(l *engine.IOLimit, v string) error { return setTo(&l.WriteBPS, parseBytes)(v) }},
		{"device-read-iops", "DEVICE:N", "read at most N times a second",
			func(l *engine.IOLimit, v string) error { return setTo(&l.ReadIOPS, parseCount)(v) }},
		{"device-write-iops", "DEVICE:N", "write at most N times a second",
			func(l *engine.IOLimit, v string) error { return setTo(&l.WriteIOPS, parseCount)(v) }},
	} {
		f.value(d.value, d.usage, func(v string) error { return parseDevice(v, l, d.limit) }, d.name)
	}
	f.text(&o.parent, "DIR", "make the sandbox's cgroup in DIR instead of searching for a place", "cgroup-parent")
	if f.Name() != "plan" {
		f.yes(&o.scope, "move to a cgroup made by systemd if no limits can be set here, or none that last", "systemd-scope")
	}
}

func (o *options) isolationFlags(f *flags) {
	s := &o.spec
	f.in("Isolation")
	f.text(&o.network, "none", "give it a loopback interface and no other: the default and only choice", "network")
	f.value("seccomp=PROFILE", "filter system calls: default, strict, debug, off, or a policy file in docker's format",
		func(v string) error { return parseSecurityOpt(v, &s.Seccomp) }, "security-opt")
	f.yes(&s.Seccomp.NoExec, "refuse to execute anything but the program itself", "no-exec")
	f.yes(&s.Seccomp.Audit, "list refused system calls on standard error", "audit")
	f.value("PROTECTION", "run without a protection that is not available, and say so: "+protections(),
		appendTo(&s.Degrade, func(v string) (engine.Protection, error) { return engine.Protection(v), nil }), "degrade")
	f.yes(&s.AllowNoIsolation, "for development: run even if this machine offers no isolation at all, and say so",
		"allow-no-isolation")
	f.given = append(f.given, func() error { return degradeByEnv(&s.Degrade) })
}

// degradeEnv has what --degrade would name, for machines whose user cannot change what is
// run there, such as containers.
const degradeEnv = "TEGMEN_DEGRADE"

func degradeByEnv(list *[]engine.Protection) error {
	for name := range strings.FieldsFuncSeq(os.Getenv(degradeEnv), func(r rune) bool { return r == ',' || r == ' ' }) {
		p := engine.Protection(name)
		if !slices.Contains(engine.Protections(), p) {
			return fmt.Errorf("%s: %q: not one of %s", degradeEnv, name, protections())
		}
		if !slices.Contains(*list, p) {
			*list = append(*list, p)
		}
	}
	return nil
}

func (o *options) outputFlags(f *flags) {
	f.in("Output")
	if f.Name() == "plan" {
		f.yes(&o.json, "print the specification as JSON, with absolute paths, for --spec", "json")
		f.yes(&o.calls, "print every system call; on macOS, the command line and the profile", "calls")
		return
	}
	f.yes(&o.explain, "report on standard error how long each part of the start took", "explain")
	if f.Name() != "shell" {
		f.yes(&o.json, "print the result as JSON, with up to 1 MiB of each output", "json")
	}
}

func (o *options) codeFlags(f *flags) {
	c := &o.code
	f.in("Code")
	f.value("CODE", "run CODE, in Python unless --lang names another language", func(v string) error {
		c.source, c.given = v, true
		return nil
	}, "e", "eval")
	f.value("LANG", "set the code's language: "+strings.Join(engine.Languages(), ", "),
		setTo(&c.Language, parseLanguage), "lang")
	f.value("NAME=VALUE", "set a variable before the code runs, to JSON or else to text",
		func(v string) error { return parseVar(v, &c.Vars) }, "var")
	f.yes(&c.check, "reject code that looks accidental or dangerous before it runs; advisory, not a security boundary",
		"check")
	f.yes(&c.value, "print the code's value as a line of JSON after its output", "value")
	f.value("FILE", "let the code call the host's commands that FILE describes", appendTo(&c.files, hostFile), "tools")
	f.value("NAME", "allow this tool, and none that is not listed this way", appendTo(&c.allow, verbatim), "allow-tool")
	f.value("N", "allow N calls of tools (default 1000)", setTo(&o.spec.Limits.ToolCalls, parseCount), "tool-calls")
	f.value("TIME", "end each call after TIME, given as for --timeout (default none)",
		setTo(&o.spec.Limits.ToolTime, parseTime), "tool-timeout")
}

func protections() string {
	var names []string
	for _, p := range engine.Protections() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

func verbatim(v string) (string, error) { return v, nil }
