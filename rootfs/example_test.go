package rootfs_test

import (
	"fmt"
	"io/fs"
	"log"
	"strings"

	"github.com/tegmen-dev/tegmen/rootfs"
)

func Example() {
	// A host on which /bin is a link into /usr, as on most distributions.
	look := func(path string) (rootfs.Source, error) {
		switch {
		case path == "/usr":
			return rootfs.Source{Path: path, Identity: rootfs.Identity{Dir: true}}, nil
		case path == "/bin":
			return rootfs.Source{Path: "/usr/bin", Identity: rootfs.Identity{Dir: true}}, nil
		case strings.HasPrefix(path, "/dev/"):
			return rootfs.Source{Path: path}, nil
		}
		return rootfs.Source{}, fs.ErrNotExist
	}
	options := rootfs.Options{UID: 1000, GID: 1000, Hostname: "sandbox", TmpBytes: 64 << 20}
	table, err := rootfs.Host(look, options)
	if err != nil {
		log.Fatal(err)
	}
	// A directory of the user's, writable, in place of the private one.
	src := rootfs.Source{Path: "/home/ann/src", Identity: rootfs.Identity{Dir: true}}
	table = table.Add(rootfs.Node{Path: rootfs.Workspace, Kind: rootfs.Bind, Source: src})
	for _, n := range table {
		if rootfs.Depth(n.Path) <= 1 {
			fmt.Println(n)
		}
	}
	// Output:
	// static   /
	// bind     /usr from /usr (ro)
	// symlink  /bin -> /usr/bin
	// dir      /etc
	// dir      /var
	// symlink  /run -> /tmp
	// dir      /dev
	// proc     /proc (0 masked, 0 read-only)
	// tmpfs    /tmp (67108864 bytes, any number of inodes, mode 1777)
	// bind     /workspace from /home/ann/src (rw)
}
