package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// Code says what kind of refusal an Error is: errors.Is(err, rootfs.NotFound). Codes are stable.
type Code string

const (
	// OutsideRoots: the path is in no root, or goes through a link that ends outside the roots or nowhere, or through
	// any link when links are not followed. These are one code and one text, so that an answer does not tell whether
	// something outside exists.
	OutsideRoots Code = "outside_roots"
	// NotFound: there is nothing at this path.
	NotFound Code = "not_found"
	// NotDirectory: something on the way, or what was to be listed, is not a directory.
	NotDirectory Code = "not_a_directory"
	// IsDirectory: a file was wanted and this is a directory.
	IsDirectory Code = "is_a_directory"
	// SpecialFile: a FIFO, a socket, a device, or a file of a kernel file system.
	SpecialFile Code = "special_file"
	// Loop: the path goes through too many links.
	Loop Code = "loop"
	// Permission: this process may not do it, or this root's rights do not allow to read.
	Permission Code = "permission"
	// InvalidPath: empty, too long, or with a character that no name can hold.
	InvalidPath Code = "invalid_path"
	// Changed: the path changed again and again while it was looked for, or the file is not what it was.
	Changed Code = "changed"
	// Exists: there is something at this path already.
	Exists Code = "exists"
	// ReadOnly: this root's rights do not allow it.
	ReadOnly Code = "read_only"
	// NotEmpty: the directory to be removed holds something.
	NotEmpty Code = "not_empty"
	// TooLarge: more bytes than the bound allows.
	TooLarge Code = "too_large"
	// AmbiguousName: nothing has exactly this name, and several names are equal to it after Unicode normalization (NFC).
	AmbiguousName Code = "ambiguous_name"
	// Denied: Options.Deny says so, or the name is one of this package's own.
	Denied Code = "denied"
	// Protected: Options.Protect says so, of it, of what holds it, or of what it holds.
	Protected Code = "protected"
	// CrossDevice: it cannot be moved in one step, because the two places are in different file systems, or it is a directory
	// of a lower layer of an overlay.
	CrossDevice Code = "cross_device"
	// Budget: it would take more steps than the bound allows.
	Budget Code = "budget"
	// IsRoot: it is a root, or holds one, and stays where it is.
	IsRoot Code = "is_root"
	// IntoItself: a directory was to be moved beneath itself.
	IntoItself Code = "into_itself"
	// HardLink: a file with several hard links, under Options.StrictLinks.
	HardLink Code = "hard_link"
	// Mount: behind a mount point, under Options.NoMounts; or a mount point, which stays where it is.
	Mount Code = "mount"
	// IO: anything else; Err says what.
	IO Code = "io"
)

var texts = map[Code]string{
	OutsideRoots:  "outside the roots, or through a link that ends outside them or nowhere",
	NotFound:      "no such file or directory",
	NotDirectory:  "not a directory",
	IsDirectory:   "is a directory",
	SpecialFile:   "not a regular file",
	Loop:          "too many links",
	Permission:    "permission denied",
	InvalidPath:   "not a valid path",
	Changed:       "it has changed meanwhile",
	Exists:        "it exists already",
	ReadOnly:      "this root's rights do not allow it",
	NotEmpty:      "the directory is not empty",
	TooLarge:      "too large",
	AmbiguousName: "several names are equal to this one after Unicode normalization",
	Denied:        "this name is not served",
	Protected:     "protected, or holds what is protected",
	CrossDevice:   "it cannot be moved in one step, as into another file system",
	Budget:        "too many entries",
	IsRoot:        "it is a root, or holds one",
	IntoItself:    "a directory cannot be moved into itself",
	HardLink:      "a file with several hard links",
	Mount:         "a mount point, or behind one",
	IO:            "the system refused it",
}

// Error is the error of every operation on a path. Its text names the path as it was given and nothing else: neither
// where a link leads nor where a root is.
type Error struct {
	Op   string // "opening", "listing", "replacing" and the like
	Path string // as it was given
	Code Code   // why
	Err  error  // what the system said, for IO and, where it said it, for Permission
}

// Error is one line: what was done, with which path, and why not.
func (e *Error) Error() string {
	text := texts[e.Code]
	if e.Code == IO && e.Err != nil {
		text = e.Err.Error()
	}
	return fmt.Sprintf("%s %q: %s", e.Op, e.Path, text)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is work with codes, fs.ErrNotExist, fs.ErrExist and fs.ErrPermission.
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e.Code == NotFound
	case fs.ErrExist:
		return e.Code == Exists
	case fs.ErrPermission:
		return e.Code == Permission || e.Code == ReadOnly || e.Code == Denied || e.Code == Protected
	}
	return target == e.Code
}

// Error is the code's fixed sentence.
func (c Code) Error() string { return texts[c] }

// asError makes the Error that the caller sees.
func asError(op, path string, err error) error {
	var f foreign
	if errors.As(err, &f) {
		return f.error
	}
	var e *Error
	if errors.As(err, &e) {
		return e // of another path, which it names
	}
	e = &Error{Op: op, Path: path, Code: codeOf(err)}
	if e.Code == errLink {
		e.Code = Changed
	}
	if b := bare(err); e.Code == IO || e.Code == Permission && b != error(Permission) {
		e.Err = b
	}
	return e
}

func codeOf(err error) Code {
	if err == nil {
		return ""
	}
	var code Code
	var e *Error
	switch {
	case errors.As(err, &code):
		return code
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case isNotEmpty(err): // before ErrExist, which it also is
		return NotEmpty
	case errors.Is(err, fs.ErrExist):
		return Exists
	case errors.Is(err, fs.ErrPermission):
		return Permission
	}
	return codeOfErrno(err)
}
