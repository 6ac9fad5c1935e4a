//go:build darwin || (linux && (amd64 || arm64))

package procbox

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// table is a made-up process table, to which moments in the life of a tree are applied.
type table map[int]proc

func (all table) add(pid, parent, group int) { all.at(pid, parent, group, int64(pid)) }

func (all table) at(pid, parent, group int, start int64) {
	all[pid] = proc{pid: pid, parent: parent, group: group, start: start}
}

func members(tr *tree) (pids []int) {
	for pid := range tr.procs {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// A tree is who has descended from the command, by parent or by group, as far as has
// been seen.
func TestTreeFollows(t *testing.T) {
	const root = 100
	for _, c := range []struct {
		name string
		life []func(table) // with a look after each
		want []int
	}{
		{"children", []func(table){func(all table) {
			all.add(root, 1, root)
			all.add(101, root, root)
			all.add(102, 101, root)
		}}, []int{100, 101, 102}},
		{"another's", []func(table){func(all table) {
			all.add(root, 1, root)
			all.add(200, 1, 200)
			all.add(201, 200, 200)
		}}, []int{100}},
		{"a group that was left by its leader", []func(table){
			func(all table) { all.add(root, 1, root); all.add(101, root, 101); all.add(102, 101, 101) },
			func(all table) { delete(all, 101); all.at(102, 1, 101, 102); all.add(103, 1, 101) },
		}, []int{100, 102, 103}},
		{"a child that moved to a group of its own", []func(table){
			func(all table) { all.add(root, 1, root); all.add(101, root, root) },
			func(all table) { all.at(101, 1, 101, 101) },
			func(all table) { all.add(102, 1, 101) },
		}, []int{100, 101, 102}},
		{"a number that is given again", []func(table){
			func(all table) { all.add(root, 1, root); all.add(101, root, 101) },
			func(all table) { delete(all, 101) },
			func(all table) { all.at(101, 1, 101, 999); all.add(102, 101, 101) },
		}, []int{100}},
		{"a number that is given again at once", []func(table){
			func(all table) { all.add(root, 1, root); all.add(101, root, 101) },
			func(all table) { all.at(101, 1, 101, 999) },
		}, []int{100}},
		{"nobody seen yet", []func(table){func(table) {}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, tr, seen := make(table), newTree(root), []int{}
			for _, happens := range c.life {
				happens(all)
				for _, pid := range tr.look(all) {
					if slices.Contains(seen, pid) {
						t.Errorf("%d is new for the second time", pid)
					}
					seen = append(seen, pid)
				}
			}
			if got := members(tr); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// A tree is gone when its command has been reaped and nobody else is left.
func TestTreeEnds(t *testing.T) {
	all, tr := table{}, newTree(100)
	all.add(100, 1, 100)
	all.add(101, 100, 100)
	tr.look(all)
	if tr.gone() || tr.living() != 2 {
		t.Errorf("%d are living", tr.living())
	}
	zombie := all[101]
	zombie.dead = true
	all[101] = zombie
	tr.look(all)
	if tr.living() != 1 {
		t.Errorf("%d are living, and one is dead", tr.living())
	}
	delete(all, 100)
	tr.reaped()
	if tr.gone() {
		t.Error("gone before who is left")
	}
	all.at(100, 1, 100, 999) // another command has its number
	tr.look(all)
	if slices.Contains(members(tr), 100) {
		t.Error("somebody else's process is in it")
	}
	delete(all, 101)
	tr.look(all)
	if !tr.gone() {
		t.Errorf("left: %v", members(tr))
	}
}

// The real table has this process and its children, told apart from those that had
// their numbers before.
func TestProcessTable(t *testing.T) {
	testenv.Need(t, testenv.Program("cat"))
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all, err := processTable()
	if err != nil {
		t.Fatal(err)
	}
	own, child := all[os.Getpid()], all[cmd.Process.Pid]
	if own.parent != os.Getppid() || own.dead || own.start == 0 {
		t.Errorf("this process is %+v", own)
	}
	if child.pid != cmd.Process.Pid || child.parent != os.Getpid() || child.group != own.group || child.dead {
		t.Errorf("the child is %+v", child)
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := waitable(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if all, err := processTable(); err != nil || !all[cmd.Process.Pid].dead {
		t.Errorf("the child has ended, and is %+v, %v", all[cmd.Process.Pid], err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it has been reaped by another: %v", err)
	}
}

// kill ends all that is in a tree.
func TestTreeKills(t *testing.T) {
	testenv.Need(t, testenv.Program("sleep"))
	cmd := exec.Command("sh", "-c", "sleep 600 & sleep 600 & wait")
	setGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tr := newTree(cmd.Process.Pid)
	for tr.living() < 3 {
		all, err := processTable()
		if err != nil {
			t.Fatal(err)
		}
		tr.look(all)
	}
	if !tr.kill() {
		t.Error("nothing could be killed")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	tr.reaped()
	for tr.living() > 0 { // who is dead waits for pid 1
		all, err := processTable()
		if err != nil {
			t.Fatal(err)
		}
		tr.look(all)
		tr.reapOrphans()
	}
}
