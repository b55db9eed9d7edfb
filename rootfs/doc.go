// Package rootfs reads and changes files inside a set of roots and nowhere else.
//
// The roots are opened once, as directory handles; everything beneath is reached from those handles. On Linux the kernel
// decides each step (openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS). Where it cannot, and on
// macOS, each element is opened from the one before without following a link, and looked at before and after. On other
// systems os.Root does it. Nothing is ever opened by a path that was checked before.
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
// changes meanwhile can pick another file of a root, never one outside. Where roots lie in one another, each directory on
// the way is held open and told from the other roots, so that the rights of the deepest root hold.
//
// A name is looked for exactly as it is written. Where it is missing and not ASCII, the one name that is equal after
// Unicode normalization (NFC) is meant, to create as well; letter case is never changed.
//
// Changes are made in a directory that is held open, under one name: Replace by a temporary file beside the old one and a
// rename, Move without replacing, MkdirAll step by step. They go by the rights of the root: Write to create, replace and
// put something somewhere, Delete to take something away. Roots themselves stay where they are, except that a root which
// is one file can be replaced. The whole new content is written by a function, which may read the old one:
//
//	_, err = fsys.Replace(ctx, "notes.txt", rootfs.ReplaceOptions{}, func(w io.Writer, old *os.File) error {
//		_, err := io.WriteString(w, "new text\n")
//		return err
//	})
//
// The temporary file of a process that was killed stays, under a name that nothing here shows or reaches. It is removed
// when its directory is listed, or first written to, or by CleanTemporary; a lock on it, which ends with its process,
// tells it from one in use. On file systems without locks an hour must have passed.
//
// Locate answers another question: where a path will lead another process, which uses plain paths. Check tells which roots
// are gone, were replaced, or cannot be read any longer.
//
// # Limits
//
// A hard link is a second name of a file and cannot be told from the first: a file outside that has a name inside is
// read, unless Options.StrictLinks refuses all files with several names. It is never written: Replace leaves the other name
// its content. Mounts inside a root are followed, unless Options.NoMounts refuses them; those of the kernel (proc, sysfs
// and their kind) never are. Who can mount can bring in anything. With openat2 a device is opened, without blocking, before
// it is refused.
//
// Options.Deny goes by names: a file that another process links, moves or copies to a name that is not denied is served,
// and so are names that differ in letter case, unless Deny takes them for one. Before a directory is moved it is searched
// for denied names; what comes into it after that search moves along.
//
// A directory that another process moves out of its root while a call is under way is still written to, through its
// handle. Between the last look of Replace and its rename there is a moment in which what a process wrote that does not use
// this package is lost. Two changes within one tick of the file system's clock, of the same size, have one Version.
//
// With os.Root alone (Windows) names are resolved again in each step: a directory that becomes a link in the moment of
// opening is followed if the link is relative and stays beneath the same root, also under NoLinks and into a root that
// lies in it. Nothing can be moved from one root to another, a file without replacing is moved by linking and removing, and
// NoMounts does not notice a mount of the same file system. Replace keeps no access list there.
//
// macOS and Windows are built and vetted, not run.
//
// Locate does not open anything and promises nothing about the moment after: what it looked at may change before the
// other process comes. Only a kernel that confines that process closes this gap.
package rootfs
