// Package workspace says what a sandbox has changed in a directory that it saw
// through an overlay, and applies that to the directory. It knows nothing of
// sandboxes: it is given the directory and the overlay's upper layer, both open,
// and reaches nothing outside of them.
//
// The upper layer is a guest's work and may hold anything: a tree that is meant to
// be walked for ever, names with line feeds, files without a right to read them.
// No symbolic link is ever followed, on either side, and no mount point crossed.
//
// The layer is read as overlayfs writes it in a user namespace, without redirects
// (docs.kernel.org/filesystems/overlayfs.html): a device 0:0 stands for what has
// been removed, and a directory with the attribute user.overlay.opaque does not
// show what it covers. Guests can make neither by themselves: overlayfs refuses the
// device and stores the attribute under another name. The other kind of whiteout, a
// file with an attribute, is only ever in lower layers.
//
// Change, Rules and Patch are portable, reading a layer takes Linux 5.11 or newer.
// No privileges are needed beyond those to the files.
package workspace
