package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tegmen-dev/tegmen/cgroup"
	"github.com/tegmen-dev/tegmen/engine"
)

func runMain(args []string) (int, error) {
	var o options
	args, err := o.parse("run", args)
	if err != nil {
		return 0, err
	}
	if len(args) == 0 || args[0] == "" {
		return 0, fmt.Errorf("run: no program given: tegmen run [flags] [--] PROGRAM [ARG...]")
	}
	if o.tty && !isTerminal(os.Stdin) {
		return 0, fmt.Errorf("run: -t needs a terminal, but standard input is not one")
	}
	o.program, o.args = args[0], args[1:]
	res, err := o.run(func(ctx context.Context, box *engine.Sandbox) (*engine.Cmd, error) {
		return box.CommandContext(ctx, args[0], args[1:]...), nil
	})
	if err != nil {
		return 0, err
	}
	return o.report(res)
}

// newCommand makes the command that a sandbox is to run.
type newCommand func(context.Context, *engine.Sandbox) (*engine.Cmd, error)

// run runs one command in a new sandbox.
func (o *options) run(command newCommand) (*engine.Result, error) {
	// There is only one sandbox: keep nothing for a second, and start it on the main thread.
	host, err := o.host()
	if err != nil {
		return nil, err
	}
	opts := engine.Options{Host: &host, NoTemplates: true, CallersThread: true, SystemdScope: o.scope}
	eng, err := engine.Open(opts)
	if err != nil {
		return nil, err
	}
	res, err := o.runIn(eng, command)
	return res, errors.Join(o.blame(err), eng.Close())
}

// host is this machine with the cgroup of --cgroup-parent.
func (o *options) host() (engine.Host, error) {
	host, err := engine.ProbeHost()
	if err == nil && o.parent != "" {
		host.Cgroup = cgroup.FindIn(o.parent)
		if host.Cgroup.Dir == "" {
			err = fmt.Errorf("--cgroup-parent %s: %s", o.parent, host.Cgroup.Reason)
		}
	}
	return host, err
}

func (o *options) runIn(eng *engine.Engine, command newCommand) (*engine.Result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if o.showsHome() {
		fmt.Fprintln(os.Stderr, "tegmen: warning: your home directory is in the workspace, with your keys and settings in "+
			"it: name a directory in it")
	}
	box, err := eng.Start(ctx, o.spec)
	runtime.UnlockOSThread() // locked by main
	if err != nil {
		return nil, err
	}
	if box.Plan().Level == engine.LevelNone {
		why := lost(box.Plan().Dropped, engine.ProtectIsolation)
		fmt.Fprintln(os.Stderr, "tegmen: warning: no isolation:", why)
	}
	cmd, err := command(ctx, box)
	if err != nil {
		return nil, err
	}
	cmd.Dir = o.workdir
	restore, err := o.stdio(cmd)
	if err != nil {
		return nil, err
	}
	defer restore()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded...) // from here on the command gets them, not tegmen
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return nil, o.startError(err)
	}
	stop := o.forward(signals, cmd, cancel)
	defer stop()
	res, err := cmd.Wait()
	if err == nil && o.explain {
		restore()
		explain(box, res)
	}
	if err == nil && o.spec.FS.WorkspaceMode == engine.WorkspaceOverlay {
		restore()
		err = o.collect(ctx, box, res)
	}
	if err == nil && o.spec.FS.Workspace != "" {
		err = box.Close() // what it has left behind makes nothing any more
		var herr error
		res.Held, herr = box.Held()
		err = errors.Join(err, herr)
	}
	return res, err
}

// stdio connects the command to this process. restore undoes the changes to the terminal.
func (o *options) stdio(cmd *engine.Cmd) (restore func(), err error) {
	restore = func() {}
	if o.interactive {
		cmd.Stdin = os.Stdin
	}
	if o.json {
		return restore, nil
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if o.stdout != nil {
		cmd.Stdout = o.stdout
	}
	if !o.tty {
		return restore, nil
	}
	cmd.Stderr = nil
	size, err := terminalSize(os.Stdin)
	if err != nil {
		return restore, err
	}
	cmd.TTY = &size
	if o.interactive {
		o.console = &console{f: os.Stdin}
		return o.console.end, o.console.enter()
	}
	return restore, nil
}

// forward passes signals on to the command. The second SIGINT, or the second
// SIGTERM, kills the sandbox.
func (o *options) forward(signals <-chan os.Signal, cmd *engine.Cmd, cancel context.CancelFunc) (stop func()) {
	done := make(chan struct{})
	go func() {
		asked := make(map[os.Signal]int)
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				asked[sig]++
				switch {
				case sig == sigWinch:
					o.resize(cmd)
				case sig == sigSuspend:
					o.suspend(cmd)
				case sig == sigResume: // after a SIGSTOP, which nobody is told of
					o.resume(cmd)
				case asked[sig] > 1 && (sig == os.Interrupt || sig == syscall.SIGTERM):
					cancel()
				case sig == os.Interrupt || sig == syscall.SIGQUIT: // as by the terminal's keys
					_ = cmd.SignalGroup(sig.(syscall.Signal)) // it may have ended
				default:
					_ = cmd.Signal(sig.(syscall.Signal)) // it may have ended
				}
			}
		}
	}()
	return func() { close(done) }
}

// accepted reports whether the flags allow running without a protection. Only plan and
// --json list what this system never has and no flag mentions.
func (o *options) accepted(level engine.Level, what engine.Protection) bool {
	return slices.Contains(o.spec.Degrade, what) || o.spec.AllowNoIsolation && level == engine.LevelLandlock
}

// reportDropped says in one line what was accepted: who accepts it reads this at each run.
func (o *options) reportDropped(start engine.StartInfo) {
	var names, reasons []string
	for _, d := range start.Dropped {
		if !o.accepted(start.Level, d.Protection) {
			continue
		}
		reasons = append(reasons, d.Reason)
		if name := string(d.Protection); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch what := strings.Join(names, ", "); {
	case len(reasons) == 1:
		fmt.Fprintf(os.Stderr, "tegmen: ran without %s: %s\n", what, reasons[0])
	case len(reasons) > 1:
		fmt.Fprintf(os.Stderr, "tegmen: ran without %s: tegmen plan with the same flags says what that means\n", what)
	}
}

// reportFull names the directories that a program that failed has filled.
func (o *options) reportFull(res *engine.Result) {
	for _, e := range res.Events {
		switch {
		case res.ExitCode == 0:
		case e.Limit == engine.LimitTmp:
			size := cmp.Or(o.spec.Limits.Tmp, engine.DefaultTmp)
			fmt.Fprintf(os.Stderr, "tegmen: %s (%s): --tmp-size gives it more\n", e.Detail, size)
		case e.Limit == engine.LimitWorkspace && res.Outcome != engine.OutcomeDisk:
			fmt.Fprintf(os.Stderr, "tegmen: %s: --workspace DIR,mode=overlay,size=… gives it more\n", e.Detail)
		case e.Limit == engine.LimitTmpFiles:
			fmt.Fprintf(os.Stderr, "tegmen: %s\n", e.Detail)
		}
	}
}

// times is how often something happened.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func lost(dropped []engine.Dropped, what engine.Protection) string {
	for _, d := range dropped {
		if d.Protection == what {
			return d.Reason
		}
	}
	return ""
}

// report prints the result with --json, prints what the exit code does not tell, and
// returns the exit code.
func (o *options) report(res *engine.Result) (int, error) {
	if o.json {
		if err := o.printJSON(os.Stdout, res); err != nil {
			return 0, err
		}
	}
	o.reportDropped(res.Start)
	reportHeld(res.Held)
	o.reportFull(res)
	for _, r := range res.Refused {
		fmt.Fprintf(os.Stderr, "tegmen: refused: %s, %s, %s\n", r.Call, r.Action, times(r.Count))
	}
	if o.commit && o.overlay.failure != nil {
		return 0, o.overlay.failure
	}
	say := func(what string) { fmt.Fprintln(os.Stderr, "tegmen: "+what) }
	if hint := o.unseenArgument(res); hint != "" {
		say(hint)
	}
	switch res.Outcome {
	case engine.OutcomeTimeout:
		say("killed: time limit exceeded")
		return exitTimeout, nil
	case engine.OutcomeCPU:
		say("killed: CPU time limit exceeded")
	case engine.OutcomeOOM:
		say("killed: memory limit exceeded")
		return exitKilled, nil // even if only a child was killed and the program continued
	case engine.OutcomeOOMHost:
		say("killed: the machine, or a cgroup around this one, is out of memory")
	case engine.OutcomePids:
		say("refused: process limit exceeded")
	case engine.OutcomeDisk:
		say("killed: workspace size limit exceeded")
	case engine.OutcomeProtect:
		say("killed: it kept making a path that is held back")
	case engine.OutcomeOutput:
		say("killed: output limit exceeded")
	case engine.OutcomeLost:
		say("killed: its sandbox was ended from outside")
	case engine.OutcomeToolCalls:
		say("refused: tool call limit exceeded")
	}
	return res.ExitCode, nil
}

func explain(box *engine.Sandbox, res *engine.Result) {
	line := func(what string, t engine.Timing) {
		fmt.Fprintf(os.Stderr,
			"tegmen: %-8s %8.3f ms: namespaces %.3f, mounts %.3f, confine %.3f, exec %.3f\n", what,
			ms(t.Total), ms(t.Namespaces), ms(t.Mounts), ms(t.Confine), ms(t.Exec))
	}
	line("sandbox", box.Timing())
	line("command", res.Start.Timing)
	fmt.Fprintf(os.Stderr, "tegmen: ran for  %8.3f ms: user %.3f, system %.3f; %s resident at most\n",
		ms(res.Usage.Wall), ms(res.Usage.User), ms(res.Usage.System), res.Usage.MaxRSS)
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
