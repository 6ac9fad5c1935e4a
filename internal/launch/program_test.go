//go:build linux && (amd64 || arm64)

package launch_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tegmen-dev/tegmen/internal/launch"
)

// A step's result goes into a structure of the kernel that a later step passes.
func TestStructuresOfTheKernel(t *testing.T) {
	path := t.TempDir() + "/f"
	p := launch.NewProgram(4)
	file := p.NewSlot()
	flags := launch.Int(unix.O_CREAT | unix.O_RDWR | unix.O_CLOEXEC)
	open := p.Do("open", path, unix.SYS_OPENAT, launch.Int(unix.AT_FDCWD), p.Str(path), flags, launch.Int(0o600))
	open.Into(file)
	iov := p.Record(p.Bytes([]byte("hello")), launch.Int(5))
	p.Do("write", path, unix.SYS_WRITEV, file.Arg(), iov, launch.Int(1))
	words := p.Words(0, 0)
	p.Do("measure", path, unix.SYS_LSEEK, file.Arg(), launch.Int(0), launch.Int(unix.SEEK_END)).Into(p.SlotIn(words, 1))
	p.Do("write words", path, unix.SYS_PWRITE64, file.Arg(), words, launch.Int(16), launch.Int(0))
	if err := spawner(t).Run(p, 0); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 16)
	want[8] = 5 // little-endian
	if !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRecordRefusesSlots(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a record took a slot, whose value it cannot know")
		}
	}()
	p := launch.NewProgram(0)
	p.Record(p.NewSlot().Arg())
}

// A program's strings outgrow one chunk of memory without moving.
func TestMemoryGrows(t *testing.T) {
	long := strings.Repeat("x", 5000)
	p := launch.NewProgram(64)
	for range 40 {
		p.Do("change directory", "", unix.SYS_CHDIR, p.Str(long[:1000])).Try()
	}
	p.Do("change directory", "", unix.SYS_CHDIR, p.Str(long)).Try()
	p.FreeCPUs(p)
	lines := strings.Split(strings.TrimSpace(p.String()), "\n")
	for i, line := range lines[:41] {
		if n := strings.Count(line, "x"); n != 1000 && i < 40 || i == 40 && n != 5000 {
			t.Errorf("line %d has %d of its characters", i, n)
		}
	}
	if err := spawner(t).Run(p, 0); err != nil {
		t.Error(err)
	}
}

func TestArgumentsPrint(t *testing.T) {
	p := launch.NewProgram(8)
	p.Phase(launch.Confine)
	p.Do("name", "", unix.SYS_PRCTL, launch.Int(unix.PR_SET_NAME), p.Str("x"))
	p.Do("mount", "/", unix.SYS_MOUNT, launch.Int(0), p.Str("/"), launch.Int(0), launch.Int(unix.MS_REC))
	p.Do("capset", "", unix.SYS_CAPSET, p.Words(1), launch.Int(0))
	p.Do("umask", "", unix.SYS_UMASK, launch.Int(0o22))
	p.Do("dup", "", unix.SYS_DUP3, launch.Int(-1), launch.Int(5), launch.Int(0))
	want := `prctl(15, "x")	# name
mount(NULL, "/", NULL, 0x4000, NULL)	# mount /
capset(…, NULL)	# capset
umask(022)	# umask
dup3(-1, 5, 0x0)	# dup
`
	if got := p.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	unknown := launch.NewProgram(1)
	unknown.Do("?", "", 9999, launch.Int(1))
	if got, want := unknown.String(), "syscall 9999(1, 0, 0, 0, 0, 0)\t# ?\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Stamps of a child come after the step that cloned it.
func TestStampsOfNestedPrograms(t *testing.T) {
	inner := launch.NewProgram(1)
	inner.Phase(launch.Mounts)
	inner.Do("inner", "/x", unix.SYS_UMASK, launch.Int(0))
	outer := launch.NewProgram(2)
	outer.Clone("fork", launch.CloneArgs{Flags: unix.CLONE_VFORK}, inner)
	if err := spawner(t).Run(outer, 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range outer.Stamps() {
		got = append(got, s.Phase.String()+" "+s.What)
	}
	want := "namespaces clone, namespaces fork, mounts inner, mounts exit, namespaces exit"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

func TestClock(t *testing.T) {
	c, start, before := launch.NewClock(), time.Now(), launch.Cycles()
	for time.Since(start) < 2*time.Millisecond { // a span that the clock's resolution does not matter in
	}
	wall, counted := time.Since(start), float64(launch.Cycles()-before)*c.Rate()
	if counted < float64(wall)/2 || counted > float64(wall)*2 {
		t.Errorf("%v by the counter, %v by the clock", time.Duration(counted), wall)
	}
}

func TestCookie(t *testing.T) {
	a, err := launch.NewCookie()
	if err != nil {
		t.Fatal(err)
	}
	b, err := launch.NewCookie()
	if err != nil {
		t.Fatal(err)
	}
	if a == b || bytes.IndexByte(a[:], 0) >= 0 {
		t.Errorf("cookies %v, %v: want different ones without a zero", a, b)
	}
	if got := (launch.Cookie{1, 2}).Arg(); got != 0x201 {
		t.Errorf("argument %#x, want 0x201", got)
	}
	env := launch.GateEnv(launch.Cookie{7, 0, 7}, []string{"A=b"})
	if len(env) != 2 || env[0] != "\x07\x01\x07\x01\x01\x01\x01\x01" || env[1] != "A=b" {
		t.Errorf("environment %q", env)
	}
}
