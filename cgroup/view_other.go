//go:build !linux

package cgroup

func theView() view {
	return view{read: func(string) string { return "" }}
}
