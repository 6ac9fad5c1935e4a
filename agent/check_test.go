//go:build linux

package agent_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/check"
	"github.com/tegmen-dev/tegmen/engine"
	"github.com/tegmen-dev/tegmen/internal/testbox"
)

// Code that a checker refuses does not run. Without a checker it does.
func TestCheckedCode(t *testing.T) {
	box := testbox.Sandbox(t, engine.Spec{Keep: true})
	for _, c := range []struct {
		name string
		code engine.Code
	}{
		{"codecell: python", engine.Code{Language: "python", Source: "print('ran')\nimport os\nopen('executed', 'w')",
			Check: check.Python}},
		{"codecell: shell", engine.Code{Language: "sh", Source: ">executed; echo ran; sudo true 2>/dev/null || exit 0",
			Check: check.Shell}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := box.RunCode(testbox.Within(t, time.Minute), c.code, nil)
			var refused *check.Error
			if !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
			same(t, testbox.Output(t, box, "ls"), "")
			c.code.Check = nil
			res, err := box.RunCode(testbox.Within(t, time.Minute), c.code, nil)
			if err != nil {
				t.Fatal(err)
			}
			same(t, string(res.Stdout), "ran\n")
			same(t, testbox.Output(t, box, "ls; rm executed"), "executed")
		})
	}
}
