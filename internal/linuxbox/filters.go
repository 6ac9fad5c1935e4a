//go:build linux && (amd64 || arm64)

package linuxbox

import (
	"github.com/tegmen-dev/tegmen/internal/box"
	"github.com/tegmen-dev/tegmen/internal/launch"
	"github.com/tegmen-dev/tegmen/internal/setup"
	"github.com/tegmen-dev/tegmen/seccomp"
)

// filters are the seccomp filters of one command.
func filters(c *box.Config, goarch string) (f setup.Filters, err error) {
	if c.Filter == nil {
		return f, nil
	}
	main := c.Filter
	if f.Audit = c.Audit; f.Audit {
		main = main.Audited()
	}
	if c.NoExec {
		if f.Cookie, err = launch.NewCookie(); err != nil {
			return f, err
		}
		f.Programs = append(f.Programs, seccomp.NoExec(goarch, f.Cookie.Arg()).Bytes())
	}
	if c.NoSetID {
		f.Programs = append(f.Programs, seccomp.NoSetID(goarch).Bytes())
	}
	f.Programs = append(f.Programs, main.Bytes())
	return f, nil
}
