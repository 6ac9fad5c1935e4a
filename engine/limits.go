package engine

import (
	"math"
	"time"
)

// Unlimited, as the value of any limit, says that there shall be none.
const Unlimited = math.MaxInt64

// Limits bounds what a sandbox uses up. 0 is the default given with each
// field; a negative number is invalid. A guest cannot raise a limit. Who
// enforces which stands in Plan.Limits.
type Limits struct {
	Wall time.Duration // of each command; default 1 hour
	// CPUTime is of each process, in whole seconds: SIGXCPU, and SIGKILL a second
	// later. It is of each command with all that descends from it, too, which
	// ends a second later; commands that run at the same time share that. Default
	// 1 hour.
	CPUTime time.Duration

	// Memory of the sandbox: of its processes, of the files in its private
	// tmpfs, and, with a cgroup, of what the kernel holds for it. Swap does not
	// come on top. Default: half of what this process may have.
	Memory       Bytes
	MemoryHigh   Bytes // above which its processes are slowed down and their memory is reclaimed; default none; takes a cgroup
	AddressSpace Bytes // of each process (RLIMIT_AS); default: unlimited, since much software reserves more than it uses

	CPUs      float64 // CPUs at once, 0.01 or more; default: all; takes a cgroup
	CPUWeight int     // 1 to 10000, relative to the other processes' of the machine; default 100; takes a cgroup
	CPUSet    string  // the CPUs to run on, "0-2,5"; default: all; takes a cgroup
	IO        []IOLimit

	Pids     int   // processes and threads at once; default 512
	Files    int   // open descriptors of each process; default 1024
	FileSize Bytes // of a file that is written; default 1 GiB
	Tmp      Bytes // of each private tmpfs; default 256 MiB
	TmpFiles int   // files and directories of each private tmpfs; default 65536
	// Workspace is of what is written to a workspace of mode overlay, which holds
	// TmpFiles files and directories; default 256 MiB. One of mode rw is watched
	// where a limit is given: commands are ended some tenths of a second after it
	// has that much more in its files than before the first of them.
	Workspace Bytes
	Output    Bytes // of each stream kept in a Result; default 1 MiB
	// Discard is how much more of a stream is read and dropped before the
	// command is ended; default 1 GiB.
	Discard Bytes

	ToolCalls       int           // calls of tools by a command; default 1000
	ToolCallsAtOnce int           // that are served at the same time; others wait; default 32
	ToolTime        time.Duration // of a call; default: unlimited, since Wall covers it
	Frame           Bytes         // of a message to or from a guest, so of a tool's arguments or value; 4 KiB to 1 GiB; default 8 MiB
}

// IOLimit bounds what a sandbox reads from and writes to a block device of the
// host. It takes a cgroup. 0 is no limit.
type IOLimit struct {
	Device              string // its path, "/dev/sda": the whole device, no partition
	ReadBPS, WriteBPS   Bytes  // a second
	ReadIOPS, WriteIOPS int    // operations a second
}

// Limit is a limit as a Plan decided it.
type Limit struct {
	Name  string // as in Limits, lower case
	Value string
	// Enforcer is who sees to it, and by what: "cgroup memory.max", "rlimit
	// nofile", "tmpfs", "watchdog" or "engine", or two of these; "" when nothing
	// does. The watchdog is this process, which looks from time to time: what it
	// ends may have had more than the limit for some milliseconds.
	Enforcer string
}

func (l Limits) withDefaults(h Host) Limits {
	l.Wall = orDefault(l.Wall, time.Hour)
	l.CPUTime = orDefault(l.CPUTime, time.Hour)
	l.Memory = orDefault(l.Memory, orDefault(h.Memory/2/MiB*MiB, Unlimited))
	l.MemoryHigh = orDefault(l.MemoryHigh, Unlimited)
	l.Pids = orDefault(l.Pids, 512)
	l.Files = orDefault(l.Files, 1024)
	l.FileSize = orDefault(l.FileSize, GiB)
	l.Tmp = orDefault(l.Tmp, 256*MiB)
	l.TmpFiles = orDefault(l.TmpFiles, 65536)
	l.Workspace = orDefault(l.Workspace, 256*MiB)
	l.Output = orDefault(l.Output, MiB)
	l.Discard = orDefault(l.Discard, GiB)
	l.ToolCalls = orDefault(l.ToolCalls, 1000)
	l.ToolCallsAtOnce = orDefault(l.ToolCallsAtOnce, 32)
	l.ToolTime = orDefault(l.ToolTime, Unlimited)
	l.Frame = orDefault(l.Frame, 8*MiB)
	l.AddressSpace = orDefault(l.AddressSpace, Unlimited)
	return l
}
