package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// options are the flags of the commands that make a sandbox, as a Spec and the
// rest.
type options struct {
	spec    engine.Spec
	workdir string
	parent  string    // cgroup to make the sandbox's in
	scope   bool      // ask systemd for one
	stdout  io.Writer // nil: ours

	interactive, tty bool
	json, explain    bool
	calls            bool
	commit           bool
	diff             string
	readOnly         bool
	network          string
	code             codeOptions
	overlay          overlayResult
}

// errHelp is a request for help that has been answered.
var errHelp = errors.New("help")

// flagSet defines the flags of a command; completion lists the same sets.
func (o *options) flagSet(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	each := func(names []string, usage string, set func(string) error) {
		for _, n := range names {
			fs.Func(n, usage, set)
		}
	}
	yes := func(p *bool, usage string, names ...string) {
		for _, n := range names {
			fs.BoolVar(p, n, false, usage)
		}
	}
	s := &o.spec
	each([]string{"v", "volume"}, "bind `SRC:DST[:ro]` of the host into the sandbox", appendTo(&s.FS.Mounts, parseVolume))
	each([]string{"mount"}, "`type=bind|tmpfs,source=…,target=…[,readonly]`; for paths with colons", appendTo(&s.FS.Mounts, parseMount))
	each([]string{"tmpfs"}, "private tmpfs at `DST[:size=64m,mode=1777]`", appendTo(&s.FS.Mounts, parseTmpfs))
	each([]string{"workspace"}, "bind `DIR[,mode=overlay][,size=64m|,upper=DIR]` writable at its own absolute path and start in it, and watch that no more than size is added; mode=overlay keeps what is written apart, in memory (default 256m) or in a directory on disk", func(v string) error {
		return parseWorkspace(v, s)
	})
	each([]string{"allow-write"}, "let `PATH` of the workspace be changed, although the host's tools execute it", appendTo(&s.FS.AllowWrite, func(v string) (string, error) { return v, nil }))
	each([]string{"rootfs"}, "use the root file system in `DIR`, read-only, instead of the host's system directories", setTo(&s.FS.Root, hostDir))
	yes(&s.FS.Overlay, "let --rootfs be written to; what is written is lost", "overlay")
	yes(&o.readOnly, "root file system read-only: the default", "read-only")
	env := []string{"e", "env"}
	if name == "code" {
		env = env[1:] // -e is a piece of code, as for python -c and node -e
	}
	each(env, "set `NAME[=value]` inside; without a value, the host's is passed on", func(v string) error {
		kv, ok := parseEnv(v)
		if ok {
			s.Env = append(s.Env, kv)
		}
		return nil
	})
	each([]string{"env-file"}, "read environment variables from `FILE`", func(v string) error {
		env, err := readEnvFile(v)
		s.Env = append(s.Env, env...)
		return err
	})
	each([]string{"w", "workdir"}, "start in `DIR`, inside", setTo(&o.workdir, insidePath))
	each([]string{"u", "user"}, "run as `UID[:GID]` inside (default 1000:1000)", setTo(&s.User, parseUser))
	each([]string{"m", "memory"}, "limit memory to `SIZE`", setTo(&s.Limits.Memory, parseBytes))
	each([]string{"memory-high"}, "slow it down above `SIZE` of memory", setTo(&s.Limits.MemoryHigh, parseBytes))
	each([]string{"cpu-weight"}, "`N` from 1 to 10000: its share of busy CPUs, where others have 100", setTo(&s.Limits.CPUWeight, parseCount))
	fs.StringVar(&s.Limits.CPUSet, "cpuset-cpus", "", "run on these `CPUS`: 0-2,5")
	for _, d := range []struct {
		name, what string
		limit      func(*engine.IOLimit, string) error
	}{
		{"device-read-bps", "read at most `DEVICE:SIZE` a second", func(l *engine.IOLimit, v string) error { return setTo(&l.ReadBPS, parseBytes)(v) }},
		{"device-write-bps", "write at most `DEVICE:SIZE` a second", func(l *engine.IOLimit, v string) error { return setTo(&l.WriteBPS, parseBytes)(v) }},
		{"device-read-iops", "read at most `DEVICE:N` times a second", func(l *engine.IOLimit, v string) error { return setTo(&l.ReadIOPS, parseCount)(v) }},
		{"device-write-iops", "write at most `DEVICE:N` times a second", func(l *engine.IOLimit, v string) error { return setTo(&l.WriteIOPS, parseCount)(v) }},
	} {
		each([]string{d.name}, d.what, func(v string) error { return parseDevice(v, &s.Limits, d.limit) })
	}
	each([]string{"require"}, "`LIMIT=ENFORCER`: refuse to run where something else enforces it, as memory=cgroup; see tegmen plan", appendTo(&s.Require, parseRequirement))
	fs.StringVar(&o.parent, "cgroup-parent", "", "make the sandbox's cgroup in `DIR`, instead of looking for a place")
	each([]string{"cpus"}, "limit to `N` CPUs at once", setTo(&s.Limits.CPUs, parseCPUs))
	each([]string{"pids-limit"}, "limit processes and threads to `N` (default 512)", setTo(&s.Limits.Pids, parseCount))
	each([]string{"ulimit"}, "`NAME=N`: nofile, nproc, fsize, cpu, as, core", func(v string) error { return parseUlimit(v, &s.Limits) })
	each([]string{"tmp-size"}, "limit each private tmpfs to `SIZE` (default 256m)", setTo(&s.Limits.Tmp, parseBytes))
	each([]string{"timeout"}, "kill the program after `TIME`: seconds, 1m30s, or none (default 1h)", setTo(&s.Limits.Wall, parseTime))
	fs.StringVar(&o.network, "network", "none", "`none`: only loopback")
	fs.StringVar(&s.Hostname, "hostname", "", "host `NAME` inside (default sandbox)")
	fs.StringVar(&s.Name, "name", "", "`NAME` for people to tell sandboxes apart")
	each([]string{"security-opt"}, "`seccomp=PROFILE`: default, strict, debug, off, or the file of a policy in docker's format", func(v string) error {
		return parseSecurityOpt(v, &s.Seccomp)
	})
	yes(&s.Seccomp.NoExec, "let nothing be executed but the program itself", "no-exec")
	yes(&s.Seccomp.Audit, "list on standard error the system calls that were refused", "audit")
	each([]string{"degrade"}, "run without this `PROTECTION` where it cannot be had, and say so: "+protections(), func(v string) error {
		s.Degrade = append(s.Degrade, engine.Protection(v))
		return nil
	})
	yes(&s.AllowNoIsolation, "run even where this machine has no isolation at all, and say so: for development", "allow-no-isolation")
	yes(&s.Seatbelt.ReadAll, "on macOS: let it read all that you can, but keys and passwords in their usual places, or what --hide lists", "read-all")
	each([]string{"hide"}, "on macOS: hide `PATH`, with what is beneath", func(v string) error {
		at, err := filepath.Abs(v)
		s.Seatbelt.Hidden = append(s.Seatbelt.Hidden, at)
		return err
	})
	if name == "plan" {
		yes(&o.calls, "print the system calls, too; on macOS the command line and the profile", "calls")
		return fs
	}
	yes(&o.commit, "with mode=overlay: when the program has ended with 0, apply what it changed to the workspace", "commit")
	each([]string{"diff"}, "with mode=overlay: write what it changed to `FILE` as a patch; - is standard output", setTo(&o.diff, patchFile))
	yes(&o.scope, "move to a cgroup of its own, by asking systemd for it, where no limits can be set otherwise, or none that last", "systemd-scope")
	yes(&o.explain, "say on standard error where the time of the start went", "explain")
	if name == "shell" {
		return fs
	}
	yes(&o.interactive, "pass standard input on", "i", "interactive")
	yes(&o.json, "print the result as JSON, with up to 1 MiB of each output in it", "json")
	if name == "run" {
		yes(&o.tty, "give the program a terminal", "t", "tty")
		return fs
	}
	c := &o.code
	each([]string{"e", "eval"}, "run `CODE`, in Python unless --lang says otherwise", func(v string) error {
		c.source, c.given = v, true
		return nil
	})
	each([]string{"lang"}, "the code is in `LANG`: "+strings.Join(engine.Languages(), ", "), setTo(&c.Language, parseLanguage))
	each([]string{"var"}, "`NAME=VALUE`: set a variable before the code runs, to JSON or else to text", func(v string) error { return parseVar(v, &c.Vars) })
	yes(&c.check, "refuse code that a model hardly ever means to write: a convenience, it stops nobody", "check")
	yes(&c.value, "print what the code returns as a line of JSON, after its output", "value")
	each([]string{"tools"}, "let the code call the commands of the host that `FILE` describes", appendTo(&c.files, hostFile))
	each([]string{"allow-tool"}, "let it call `NAME`, and no tool that is not named so", appendTo(&c.allow, func(v string) (string, error) { return v, nil }))
	each([]string{"tool-calls"}, "let it call tools `N` times (default 1000)", setTo(&s.Limits.ToolCalls, parseCount))
	each([]string{"tool-timeout"}, "end each call after `TIME`, as of --timeout (default none)", setTo(&s.Limits.ToolTime, parseTime))
	return fs
}

func protections() string {
	var names []string
	for _, p := range engine.Protections() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// parse reads flags up to the first argument that is none, or "--".
func (o *options) parse(name string, args []string) (rest []string, err error) {
	fs := o.flagSet(name)
	if name == "run" {
		for _, both := range []string{"it", "ti"} { // as people type -i -t; no flag to list
			fs.BoolFunc(both, "", func(string) error { o.interactive, o.tty = true, true; return nil })
		}
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		printFlags(new(options).flagSet(name))
		return nil, errHelp
	case err != nil:
		return nil, fmt.Errorf("%s: %w; see tegmen %s --help", name, err, name)
	}
	if o.network != "none" {
		return nil, fmt.Errorf("%s: network %q: only none is supported", name, o.network)
	}
	if o.readOnly && o.spec.FS.Overlay {
		return nil, fmt.Errorf("%s: --read-only and --overlay contradict each other", name)
	}
	if overlaid := o.spec.FS.WorkspaceMode == engine.WorkspaceOverlay; !overlaid && (o.commit || o.diff != "") {
		return nil, fmt.Errorf("%s: --commit and --diff are for --workspace DIR,mode=overlay", name)
	}
	if o.json && o.diff == "-" {
		return nil, fmt.Errorf("%s: --json prints to standard output, so --diff needs a file", name)
	}
	if o.json && o.tty {
		return nil, fmt.Errorf("%s: --json keeps the output, so it does not go with -t", name)
	}
	if o.scope && o.parent != "" {
		return nil, fmt.Errorf("%s: --cgroup-parent says where, so it does not go with --systemd-scope", name)
	}
	return fs.Args(), nil
}

// printFlags is the help, with the dashes that people type.
func printFlags(fs *flag.FlagSet) {
	fmt.Print("Flags:\n")
	fs.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Printf("  %s %s\n        %s\n", dashed(f.Name), value, usage)
	})
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func setTo[T any](p *T, parse func(string) (T, error)) func(string) error {
	return func(v string) (err error) {
		*p, err = parse(v)
		return err
	}
}

func appendTo[T any](p *[]T, parse func(string) (T, error)) func(string) error {
	return func(v string) error {
		one, err := parse(v)
		*p = append(*p, one)
		return err
	}
}
