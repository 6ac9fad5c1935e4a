//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// orders are what a guest finds in its initrd.
type orders struct {
	Module string // the host's directory of the module, seen at source
	Jobs   []job
}

// A job is a test binary and the user it runs as.
type job struct {
	As      string // root, user, container
	Program string // the host's path
	Dir     string // beneath the module
	Args    []string
	Env     []string
}

// An event is a line from the guest to the host. Jobs run one after the other.
type event struct {
	Output  string  `json:",omitempty"`
	Ended   bool    `json:",omitempty"` // the job has, with Code
	Code    int     `json:",omitempty"`
	Seconds float64 `json:",omitempty"`
	Done    bool    `json:",omitempty"` // all jobs have
}

// machines are the QEMU machines and CPUs, by architecture: the fastest that it emulates. Five levels of page tables
// and real pointer authentication cost time.
var machines = map[string]struct{ qemu, board, cpu, console string }{
	"amd64": {"qemu-system-x86_64", "q35", "max,la57=off", "ttyS0"},
	"arm64": {"qemu-system-aarch64", "virt", "max,pauth-impdef=on", "ttyAMA0"},
}

// boot runs one machine until all jobs are done, and passes on each event. Only the events count: the exit status of
// QEMU is 0 even after a panic.
func (l *lane) boot(k kernel, parameters string, o orders, on func(event)) error {
	ctx, stop := context.WithTimeoutCause(l.ctx, l.timeout, fmt.Errorf("not done in %v", l.timeout))
	defer stop()
	dir, err := os.MkdirTemp("", "tegmen-vm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	archive, err := initrd(k, l.init, o)
	if err != nil {
		return err
	}
	file, console := filepath.Join(dir, "initrd"), filepath.Join(dir, "console")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		return err
	}
	machine := machines[k.arch]
	// One CPU: with more, emulated ones have raced with the kernel's patching of itself. A reboot, which follows a panic,
	// ends QEMU.
	cmd := exec.CommandContext(ctx, machine.qemu, "-M", machine.board, "-accel", "tcg", "-cpu", machine.cpu, "-smp", "1",
		"-m", "1024",
		"-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
		"-kernel", k.image, "-initrd", file, "-serial", "file:"+console,
		"-device", "virtio-serial-pci", "-chardev", "file,id=events,path=/dev/stdout", "-device",
		"virtserialport,chardev=events,name=events",
		"-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap", "-device",
		"virtio-9p-pci,fsdev=host,mount_tag=host",
		"-append", "console="+machine.console+" quiet panic=-1 oops=panic rcupdate.rcu_expedited=1 "+parameters)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // see main
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = listen(out, on)
	if err == nil {
		return cmd.Wait()
	}
	_ = cmd.Process.Kill() // it may not have ended, but listen says why it has to
	_ = cmd.Wait()
	log, _ := os.ReadFile(console) // as much as there is
	return fmt.Errorf("%w\n%s%s", errors.Join(err, context.Cause(ctx)), stderr.Bytes(), log[max(0, len(log)-4000):])
}

func listen(r io.Reader, on func(event)) error {
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("no answer from the guest: %w", err)
		}
		if e.Done {
			return nil
		}
		on(e)
	}
}
