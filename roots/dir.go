package roots

import "slices"

// Access says what may be done beneath a directory. The zero value allows nothing. Rights of two sets intersect by
// the bitwise and.
type Access uint8

const (
	// Read allows reading, listing and describing.
	Read Access = 1 << iota
	// Write allows creating and changing. It does not allow taking away.
	Write
	// Delete allows removing, and moving away from where a thing was.
	Delete

	// ReadOnly is what `--ro` gives.
	ReadOnly = Read
	// ReadWrite is what `--root` gives.
	ReadWrite = Read | Write | Delete
)

// FileID tells one file from another on one machine: device and inode, or volume and file index. The zero value means
// that it is not known.
type FileID struct {
	Volume, Index uint64 // the device, and the file on it
}

// Root is a root as told: what a client answered to roots/list, what a configuration names, what a server is told.
// Nothing about it has been looked at.
type Root struct {
	// URI is a file URI, as it was written.
	URI string
	// Name is for people. It may be empty.
	Name string
}

// Dir is a root resolved to what is on disk: a directory, or one regular file. Only Resolve makes one that means
// something.
type Dir struct {
	// Path is the absolute path with every link resolved.
	Path string
	// Spellings are the absolute paths under which it is served: Path first, and the way it was written when that goes
	// through a link.
	Spellings []string
	// Name is for people and for {root:NAME}. It may be empty.
	Name string
	// Access is what may be done beneath it. A Dir that allows nothing is a hole in one that holds it.
	Access Access
	// File is set when the root is one regular file. It then matches only itself.
	File bool
	// Pinned is set when a client's list cannot take it away.
	Pinned bool
	// ID is the identity of Path when it was resolved.
	ID FileID
	// Origin says where it came from, for messages: "--root", "client", "rootbound.toml:12".
	Origin string

	// ancestors are the identities of the directories above Path, the nearest first. They decide what lies beneath what
	// where one directory can be written in several ways.
	ancestors []FileID
}

// Equal reports whether two resolved roots are the same in everything but Origin: also the identity on disk, so a
// directory that was replaced by another is not equal to what it was.
func (d Dir) Equal(e Dir) bool {
	return d.Path == e.Path && slices.Equal(d.Spellings, e.Spellings) && d.Name == e.Name && d.Access == e.Access &&
		d.File == e.File && d.Pinned == e.Pinned && d.ID == e.ID
}

func (d Dir) clone() Dir {
	d.Spellings = slices.Clone(d.Spellings)
	return d
}
