package engine

import (
	"math"
	"strconv"
	"time"
)

// Spec says what a sandbox is to be. It is plain data: copy it, print it,
// store it as JSON. The engine never writes into it. The zero Spec is the
// tightest sandbox there is.
type Spec struct {
	Name     string   // a label for people, shown in the host's list of processes; may be empty
	Hostname string   // inside; "" means "sandbox"
	User     *User    // inside; nil means 1000:1000
	FS       FS       // what files there are
	Env      []string // "KEY=value" for every command, besides the defaults; see Cmd.Env
	Limits   Limits   // what it may use up

	// Keep lets the sandbox live on when a command in it reaches its wall
	// clock limit or is cancelled: only that command and what descends from it
	// are killed. Without it the sandbox ends.
	Keep bool

	// Degrade lists protections that may be missing where the machine cannot
	// give them. What was lost stands in Plan.Dropped and in every Result. A
	// protection that cannot be had and is not listed is an error.
	Degrade []Protection
}

// User is who commands run as inside. On the host it is the user that the
// engine runs as; for root it is the owner of the workspace, or nobody.
type User struct {
	UID, GID int // 0 is root inside, without any capability
}

// FS says what files a sandbox has.
type FS struct {
	// Root is a directory of the host with a root file system in it, used
	// read-only. "" is a view of the host's own system directories.
	Root string
	// Overlay lets Root be written to; what is written is lost.
	Overlay bool
	// Mounts are made in this order, on top of the rest.
	Mounts []Mount
	// Workspace is a directory of the host that is writable inside, under its
	// own absolute path, and that commands start in. "" is a private one.
	Workspace string
}

// MountType is "bind" or "tmpfs".
type MountType string

// The types of a Mount.
const (
	MountBind  MountType = "bind"
	MountTmpfs MountType = "tmpfs"
)

// Mount is one mount of a Spec.
type Mount struct {
	Type     MountType
	Source   string // bind: an absolute path of the host, which exists and is not "/"
	Target   string // inside, absolute
	ReadOnly bool   // bind: not writable
	Size     Bytes  // tmpfs: 0 means Limits.Tmp
	Mode     uint32 // tmpfs: permission bits, 0 means 01777
}

// Bytes is a number of bytes.
type Bytes int64

// Sizes to multiply with.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// String prints the largest unit that divides b: "64MiB".
func (b Bytes) String() string {
	for _, u := range []struct {
		size Bytes
		name string
	}{{GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Unlimited, as the value of any limit, says that there shall be none.
const Unlimited = math.MaxInt64

// Limits bounds what a sandbox uses up. 0 is the default given with each
// field; a negative number is invalid. A guest cannot raise a limit.
type Limits struct {
	Wall         time.Duration // of each command; default 1 hour
	CPUTime      time.Duration // of each process, whole seconds: SIGXCPU, and SIGKILL a second later; default 1 hour
	CPUs         float64       // CPUs at once; default: all
	Memory       Bytes         // of the sandbox; default: the machine's
	AddressSpace Bytes         // of each process (RLIMIT_AS); default: unlimited, since much software reserves more than it uses
	Pids         int           // processes and threads at once; default 512
	Files        int           // open descriptors of each process; default 1024
	FileSize     Bytes         // of a file that is written; default 1 GiB
	Tmp          Bytes         // of each private tmpfs; default 256 MiB
	TmpFiles     int           // files and directories of each private tmpfs; default 65536
	Output       Bytes         // of each stream kept in a Result; default 1 MiB
}

// Protection names something that a machine may be unable to give.
type Protection string

// The protections that can be listed in Spec.Degrade.
const (
	ProtectMemory Protection = "memory" // Limits.Memory
	ProtectCPUs   Protection = "cpus"   // Limits.CPUs
)

// Protections lists what Spec.Degrade may hold.
func Protections() []Protection { return []Protection{ProtectMemory, ProtectCPUs} }
