// Package workspace lists what a sandbox has changed in a directory that it saw through
// an overlay, and applies the changes to the directory. It does not depend on sandboxes:
// it takes open descriptors of the directory and of the overlay's upper layer, and
// reaches nothing outside of them.
//
// The guest controls the upper layer, which may hold anything: trees so large that a
// walk would not end, names with line feeds, unreadable files. On both sides, symbolic
// links are never followed and mount points never crossed.
//
// The upper layer has the format that overlayfs writes in a user namespace, without
// redirects (docs.kernel.org/filesystems/overlayfs.html): a device 0:0, called whiteout,
// stands for a removed path, and a directory with the attribute user.overlay.opaque
// hides what it covers. A guest cannot create either directly: overlayfs refuses the
// device and stores the attribute under another name. The other form of whiteout, a file
// with an attribute, occurs only in lower layers.
//
// The methods of Overlay need Linux 5.11, and no privileges beyond access to the files.
// On other systems they return ErrUnsupported.
package workspace
