package cgroup

import (
	"os"
	"sync"
	"testing"
)

// open returns a Parent in an ordinary directory, in which groups without processes
// behave as in a cgroup.
func open(t *testing.T, ahead bool) *Parent {
	t.Helper()
	return &Parent{dir: t.TempDir(), stem: "tegmen-1-2-3", keep: ahead}
}

// left counts what is in the Parent's directory.
func left(t *testing.T, p *Parent) int {
	t.Helper()
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A group that is closed after its Parent is removed all the same, before Close
// returns: nobody else waits for it.
func TestGroupIsClosedAfterItsParent(t *testing.T) {
	for range 100 {
		p := open(t, false)
		g, err := p.New(Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if n := left(t, p); n != 0 {
			t.Fatalf("%d cgroups are left", n)
		}
	}
}

// Groups are created and closed while their Parent is being closed, by several at
// once.
func TestCloseWhileGroupsComeAndGo(t *testing.T) {
	for range 500 {
		p := open(t, true)
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				for {
					g, err := p.New(Settings{})
					if err != nil {
						return // closed
					}
					for range 2 {
						if err := g.Close(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		for range 2 {
			users.Go(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		users.Wait()
		if n := left(t, p); n != 0 {
			t.Fatalf("%d cgroups are left", n)
		}
	}
}
