package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
)

// options are the flags that run and plan share, as a Spec and the rest.
type options struct {
	spec    engine.Spec
	workdir string

	interactive, tty bool
	json, explain    bool
	calls            bool
	readOnly         bool
	network          string
}

// errHelp is a request for help that has been answered.
var errHelp = errors.New("help")

// flagSet defines every flag; completion lists the same set.
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
	each([]string{"workspace"}, "bind `DIR` writable at its own absolute path and start in it", setTo(&s.FS.Workspace, hostDir))
	each([]string{"rootfs"}, "use the root file system in `DIR`, read-only, instead of the host's system directories", setTo(&s.FS.Root, hostDir))
	yes(&s.FS.Overlay, "let --rootfs be written to; what is written is lost", "overlay")
	yes(&o.readOnly, "root file system read-only: the default", "read-only")
	each([]string{"e", "env"}, "set `NAME[=value]` inside; without a value, the host's is passed on", func(v string) error {
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
	each([]string{"cpus"}, "limit to `N` CPUs at once", setTo(&s.Limits.CPUs, parseCPUs))
	each([]string{"pids-limit"}, "limit processes and threads to `N` (default 512)", setTo(&s.Limits.Pids, parseCount))
	each([]string{"ulimit"}, "`NAME=N`: nofile, nproc, fsize, cpu, as, core", func(v string) error { return parseUlimit(v, &s.Limits) })
	each([]string{"tmp-size"}, "limit each private tmpfs to `SIZE` (default 256m)", setTo(&s.Limits.Tmp, parseBytes))
	each([]string{"timeout"}, "kill the program after `TIME`: seconds, 1m30s, or none (default 1h)", setTo(&s.Limits.Wall, parseTime))
	fs.StringVar(&o.network, "network", "none", "`none`: only loopback")
	fs.StringVar(&s.Hostname, "hostname", "", "host `NAME` inside (default sandbox)")
	fs.StringVar(&s.Name, "name", "", "`NAME` for people to tell sandboxes apart")
	each([]string{"degrade"}, "run without this `PROTECTION` where it cannot be had, and say so: "+protections(), func(v string) error {
		s.Degrade = append(s.Degrade, engine.Protection(v))
		return nil
	})
	if name == "plan" {
		yes(&o.calls, "print the system calls, too", "calls")
		return fs
	}
	yes(&o.interactive, "pass standard input on", "i", "interactive")
	yes(&o.tty, "give the program a terminal", "t", "tty")
	yes(&o.json, "print the result as JSON, with up to 1 MiB of each output in it", "json")
	yes(&o.explain, "say on standard error where the time of the start went", "explain")
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
	switch err := fs.Parse(splitClusters(args)); {
	case errors.Is(err, flag.ErrHelp):
		printFlags(fs)
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
	if o.json && o.tty {
		return nil, fmt.Errorf("%s: --json keeps the output, so it does not go with -t", name)
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

// splitClusters turns -it into -i -t, before the first argument that is not a
// flag.
func splitClusters(args []string) []string {
	for i, a := range args {
		if a == "-it" || a == "-ti" {
			return append(append(append([]string{}, args[:i]...), "-i", "-t"), args[i+1:]...)
		}
		if a == "--" {
			break
		}
	}
	return args
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
