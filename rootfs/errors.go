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
	// Permission: this process or this root's rights do not allow it.
	Permission Code = "permission"
	// InvalidPath: empty, too long, or with a character that no name can hold.
	InvalidPath Code = "invalid_path"
	// Changed: the path changed under the walk, again and again.
	Changed Code = "changed"
	// IO: anything else; Err says what.
	IO Code = "io"
)

var texts = map[Code]string{
	OutsideRoots: "outside the roots, or through a link that ends outside them or nowhere",
	NotFound:     "no such file or directory",
	NotDirectory: "not a directory",
	IsDirectory:  "is a directory",
	SpecialFile:  "not a regular file",
	Loop:         "too many links",
	Permission:   "permission denied",
	InvalidPath:  "not a valid path",
	Changed:      "it changes too fast",
}

// Error is the error of every operation on a path. Its text names the path as it was given and nothing else: neither
// where a link leads nor where a root is.
type Error struct {
	Op   string // "opening", "describing", "listing"
	Path string // as it was given
	Code Code
	Err  error // set for IO only
}

func (e *Error) Error() string {
	text := texts[e.Code]
	if e.Code == IO && e.Err != nil {
		text = e.Err.Error()
	}
	return fmt.Sprintf("%s %q: %s", e.Op, e.Path, text)
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is work with codes, fs.ErrNotExist and fs.ErrPermission.
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e.Code == NotFound
	case fs.ErrPermission:
		return e.Code == Permission
	}
	return target == e.Code
}

// Error is the code's fixed sentence.
func (c Code) Error() string { return texts[c] }

// asError makes the Error that the caller sees.
func asError(op, path string, err error) error {
	code := codeOf(err)
	e := &Error{Op: op, Path: path, Code: code}
	if code == IO {
		// A PathError names where we looked, which is not the caller's path.
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		e.Err = err
	}
	return e
}

func codeOf(err error) Code {
	var code Code
	switch {
	case errors.As(err, &code):
		return code
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrPermission):
		return Permission
	}
	return codeOfErrno(err)
}
