//go:build linux

package test

import (
	"errors"
	"testing"
	"time"

	"github.com/tegmen-dev/tegmen/check"
	"github.com/tegmen-dev/tegmen/engine"
)

// What a checker refuses does not begin to run; without one, it does.
func TestCheckedCode(t *testing.T) {
	box := sandbox(t, engine.Spec{Keep: true})
	for _, c := range []struct {
		name string
		code engine.Code
	}{
		{"P58 python", engine.Code{Language: "python", Source: "print('ran')\nimport os\nopen('executed', 'w')", Check: check.Python}},
		{"P46 shell", engine.Code{Language: "sh", Source: ">executed; echo ran; sudo true 2>/dev/null || exit 0", Check: check.Shell}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := box.Run(within(t, time.Minute), c.code, nil)
			var refused *check.Error
			if !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
			same(t, output(t, box, "ls"), "")
			c.code.Check = nil
			res, err := box.Run(within(t, time.Minute), c.code, nil)
			if err != nil {
				t.Fatal(err)
			}
			same(t, string(res.Stdout), "ran\n")
			same(t, output(t, box, "ls; rm executed"), "executed")
		})
	}
}
