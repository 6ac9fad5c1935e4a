package engine

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegmen-dev/tegmen/internal/testenv"
)

func TestOverlayPlanGolden(t *testing.T) {
	files := map[string]string{"/home/u/proj": "/home/u/proj", "/link": "/home/u/proj", "/data": "/data", "/home/u/proj/.npmrc": "/home/u/proj/.npmrc"}
	for _, c := range []struct {
		name string
		spec Spec
	}{
		{"workspace_overlay", Spec{FS: FS{Workspace: "/link", WorkspaceMode: WorkspaceOverlay}}},
		{"workspace_upper", Spec{FS: FS{Workspace: "/home/u/proj", WorkspaceMode: WorkspaceOverlay, Upper: "/data"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(c.spec, machineOf(Host{UID: 1234, GID: 1235}, files))
			if err != nil {
				t.Fatal(err)
			}
			testenv.Golden(t, filepath.Join("testdata", "plan", c.name+".txt"), p.String(), *update)
		})
	}
}

func TestOverlayRefused(t *testing.T) {
	ws := func(mode WorkspaceMode, upper string, size Bytes) Spec {
		return Spec{FS: FS{Workspace: "/ws", WorkspaceMode: mode, Upper: upper}, Limits: Limits{Workspace: size}}
	}
	files := map[string]string{"/ws": "/ws", "/ws/up": "/ws/up", "/up": "/up", "/file": "/file.txt"}
	for _, c := range []struct {
		name string
		spec Spec
		is   error
		says string
	}{
		{"unknown mode", ws("ro", "", 0), ErrInvalid, `mode "ro"`},
		{"no workspace", Spec{FS: FS{WorkspaceMode: WorkspaceOverlay}}, ErrInvalid, "without a workspace"},
		{"an upper of nothing", ws("", "/up", 0), ErrInvalid, "only a workspace of mode overlay"},
		{"a limit of nothing", Spec{Limits: Limits{Workspace: MiB}}, ErrInvalid, "without a workspace"},
		{"a limit that nothing keeps", ws(WorkspaceOverlay, "/up", MiB), ErrInvalid, "leave out one"},
		{"negative", ws(WorkspaceOverlay, "", -1), ErrInvalid, "limit workspace: negative"},
		{"missing", ws(WorkspaceOverlay, "/nope", 0), ErrInvalid, "/nope"},
		{"over nothing", Spec{FS: FS{Workspace: "/nope", WorkspaceMode: WorkspaceOverlay, Upper: "/up"}}, ErrInvalid, "/nope"},
		{"a file", ws(WorkspaceOverlay, "/file", 0), ErrInvalid, "not a directory"},
		{"inside", ws(WorkspaceOverlay, "/ws/up", 0), ErrInvalid, "in the workspace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(c.spec, machineOf(Host{UID: 1}, files))
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, %v; want %v that says %q in a line", p, err, c.is, c.says)
			}
		})
	}
	h := machineOf(Host{UID: 1}, files)
	h.Kernel = "6.1.0-18-amd64"
	if _, err := Compile(ws(WorkspaceOverlay, "", 0), h); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "6.6") {
		t.Errorf("an older tmpfs: %v", err)
	}
	if _, err := Compile(ws(WorkspaceOverlay, "/up", 0), h); err != nil {
		t.Error(err)
	}
}
