package box

import "testing"

func TestKernelAtLeast(t *testing.T) {
	for _, c := range []struct {
		release string
		want    bool
	}{{"5.14.0-70.el9", true}, {"5.13.19", false}, {"6.1.0-18-amd64", true}, {"4.19", false}, {"10.0", true}, {"odd", false}} {
		if got := KernelAtLeast(c.release, "5.14"); got != c.want {
			t.Errorf("%s: %v", c.release, got)
		}
	}
}
