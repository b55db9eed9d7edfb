// Package rootfs reaches files inside a set of roots and nowhere else.
//
// The roots are opened once, as directory handles; everything beneath is reached from those handles. On Linux the kernel
// decides each step (openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS); where it cannot, and
// on other systems, os.Root does. Nothing is ever opened by a path that was checked before.
//
//	set := roots.NewSet(dir)
//	fsys, err := rootfs.Open(set, rootfs.Options{})
//	if err != nil {
//		return err
//	}
//	defer fsys.Close()
//	f, err := fsys.Open("src/main.go")
//
// Links are followed element by element, by their text, and only when they end inside a root of the set: absolute links
// and links from one root into another work. Every step of such a walk starts again from a handle, so a link that
// changes meanwhile can pick another file of a root, never one outside.
//
// Locate answers another question: where a path will lead another process, which uses plain paths. Check and Watch tell
// when a root is gone, was replaced, or cannot be read any longer.
//
// # Limits
//
// A hard link is a second name of a file and cannot be told from the first: a file outside that has a name inside is
// read. Mounts inside a root are followed, those of the kernel (proc, sysfs and their kind) are not; who can mount can
// bring in anything. A device is opened, without blocking, before it is refused. With os.Root, under Options.Links
// NoLinks, a file that becomes a link in the moment of opening is followed if the link is relative and stays beneath the
// same root.
//
// Locate does not open anything and promises nothing about the moment after: what it looked at may change before the
// other process comes. Only a kernel that confines that process closes this gap.
package rootfs
