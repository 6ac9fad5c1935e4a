package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// parseSecurityOpt is docker's --security-opt.
func parseSecurityOpt(v string, s *engine.Seccomp) error {
	key, value, _ := strings.Cut(v, "=")
	switch {
	case key == "no-new-privileges" && (value == "" || value == "true"):
		return nil // it is always on
	case key != "seccomp" || value == "":
		return fmt.Errorf("use seccomp=PROFILE: %s, or the file of a policy", strings.Join(profileNames(), ", "))
	case value == "unconfined": // docker's word
		value = engine.SeccompOff
	}
	s.Profile, s.Policy = value, nil
	if slices.Contains(profileNames(), value) {
		return nil
	}
	p, err := readPolicy(value)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(value, "./") {
		err = fmt.Errorf("unknown profile %q: use one of %s", value, strings.Join(profileNames(), ", "))
	}
	s.Profile, s.Policy = "", p
	return err
}

func profileNames() []string { return append(seccomp.Names(), engine.SeccompOff) }

func readPolicy(file string) (*seccomp.Policy, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	p, err := seccomp.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

const seccompUsage = "use show [PROFILE], explain CALL [PROFILE] or check FILE"

func seccompMain(args []string) (int, error) {
	if len(args) > 0 {
		rest := args[1:]
		switch args[0] {
		case "-h", "-help", "--help":
			fmt.Println(seccompUsage)
			return 0, errHelp
		case "show":
			return 0, withProfile(rest, 0, seccompShow)
		case "explain":
			if len(rest) > 0 {
				return 0, withProfile(rest, 1, func(p *seccomp.Profile) error { return seccompExplain(p, rest[0]) })
			}
		case "check":
			if len(rest) == 1 {
				return 0, seccompCheck(rest[0])
			}
		}
	}
	return 0, fmt.Errorf("seccomp: %s", seccompUsage)
}

// withProfile calls f with the profile named by args[at], or with the default one.
func withProfile(args []string, at int, f func(*seccomp.Profile) error) error {
	name := "default"
	switch {
	case len(args) > at+1:
		return fmt.Errorf("seccomp: %s", seccompUsage)
	case len(args) == at+1:
		name = args[at]
	}
	p := seccomp.Lookup(name)
	if p == nil {
		return fmt.Errorf("seccomp: no profile %q: there are %s", name, strings.Join(seccomp.Names(), ", "))
	}
	return f(p)
}

func seccompShow(p *seccomp.Profile) error {
	fmt.Printf("# %s: %s\n", p.Name, p.About)
	for _, g := range p.Decided() {
		fmt.Printf("\n%s: %s\n  %s\n  %s\n", g.Action, g.Name, g.Why, strings.Join(g.Calls, " "))
	}
	fmt.Print("\nENOSYS: everything else\n\nby their arguments:\n")
	for _, r := range p.Refusals {
		fmt.Printf("%s: %s\n  %s\n", r.Action, r.Call, r.Why)
	}
	return nil
}

func seccompExplain(p *seccomp.Profile, call string) error {
	if _, ok := seccomp.Number(runtime.GOARCH, call); !ok {
		return fmt.Errorf("seccomp: this machine has no system call %q", call)
	}
	action, why, refusals := p.Explain(call)
	fmt.Printf("%s: %s\n  %s\n", call, action, why)
	for _, r := range refusals {
		fmt.Printf("  %s with some arguments: %s\n", r.Action, r.Why)
	}
	return nil
}

func seccompCheck(file string) error {
	p, err := readPolicy(file)
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if unknown := p.Unknown(); len(unknown) > 0 {
		fmt.Printf("%s: no effect on this machine, or unknown: %s\n", file, strings.Join(unknown, " "))
	}
	host, err := engine.ProbeHost()
	if err != nil {
		return err
	}
	plan, err := engine.Compile(engine.Spec{Seccomp: engine.Seccomp{Policy: p}}, host)
	if errors.Is(err, seccomp.ErrNoCompiler) {
		fmt.Printf("%s: well-formed; %v\n", file, seccomp.ErrNoCompiler)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: ok, %d instructions\n", file, plan.FilterLen())
	return nil
}
