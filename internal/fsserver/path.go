package fsserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// What is done, as the reference server's errors name it.
const (
	opOpen    = "open"
	opStat    = "stat" // what it does first for the end of a file
	opRead    = "read"
	opScandir = "scandir"
)

// at finds what an argument means and does something there. It returns the absolute path at which do succeeded, or an
// error for the model. Op is the name that the reference server's errors have for what is done.
func (c *call) at(op, arg string, do func(path string) error) (string, error) {
	paths, err := c.paths(arg)
	if err != nil {
		return "", err
	}
	var first error
	for _, path := range paths {
		err := do(path)
		if err == nil {
			return path, nil
		}
		if first == nil {
			first = c.explain(op, path, err)
		}
		if !errors.Is(err, rootfs.NotFound) && !errors.Is(err, rootfs.OutsideRoots) {
			return "", c.explain(op, path, err)
		}
	}
	return "", first
}

// paths returns the absolute paths that an argument can mean, in the order in which they are tried: itself, or, when it is
// relative, what it is beneath each root; with no root that is an error. Nothing is cleaned: ".." means what it means to the system.
func (c *call) paths(arg string) ([]string, error) {
	path, err := c.expand(arg)
	if err != nil {
		return nil, err
	}
	if filepath.IsAbs(path) {
		return []string{trimSeparators(path)}, nil
	}
	var paths []string
	for _, d := range c.set.Dirs() {
		if !mayRead(d) {
			continue
		}
		base := d.Path
		if d.File {
			base = filepath.Dir(base)
		}
		paths = append(paths, trimSeparators(base+string(filepath.Separator)+path))
	}
	if paths == nil {
		return nil, nothingAllowed
	}
	return paths, nil
}

// Means returns the absolute path that an argument means with a set as it is on the disk now: where a tool reads, or with
// writes, where one makes or changes something. It is for who asks a person before a call is made.
func (s *Server) Means(ctx context.Context, set roots.Set, arg string, writes bool) (string, error) {
	o, err := s.sets.use(set)
	if err != nil {
		return "", err
	}
	defer s.sets.done(o)
	c := &call{openSet: o, Server: s, ctx: ctx}
	if writes {
		return c.target(arg)
	}
	return c.at(opStat, arg, func(path string) error {
		_, err := c.fs.Stat(path)
		return err
	})
}

// expand returns the path of an argument that is a URI, or begins with the home directory, and any other as it is.
func (c *call) expand(arg string) (string, error) {
	switch {
	case isURI(arg):
		path, err := roots.ParseURI(arg)
		if refused := (*roots.Error)(nil); errors.As(err, &refused) {
			return "", refuse(rootfs.InvalidPath, "Access denied - %s is not the URI of a file of this machine: %s", show(arg), refused.Fix)
		}
		return path, nil
	case runtime.GOOS != "windows" && isDrivePath(arg):
		return "", refuse(rootfs.InvalidPath, "Access denied - Windows-style path received on a POSIX host: %s", show(arg))
	case c.home != "" && (arg == "~" || len(arg) > 1 && arg[0] == '~' && os.IsPathSeparator(arg[1])):
		return c.home + arg[1:], nil
	}
	return arg, nil
}

// absolute returns the path that the argument "path" means whatever the roots are, "" when there is none.
func (c *call) absolute() string {
	path, err := c.expand(c.args.text("path"))
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// isURI reports whether an argument is a file URI and not a path.
func isURI(arg string) bool {
	const scheme = "file:/"
	return len(arg) >= len(scheme) && strings.EqualFold(arg[:len(scheme)], scheme)
}

// isDrivePath reports whether an argument begins like a path of Windows.
func isDrivePath(arg string) bool {
	return len(arg) >= 2 && arg[1] == ':' && 'a' <= arg[0]|0x20 && arg[0]|0x20 <= 'z' && (len(arg) == 2 || arg[2] == '/' || arg[2] == '\\')
}

// trimSeparators takes the separators off the end of a path: "file/" is taken for "file", as the reference server does.
func trimSeparators(path string) string {
	top := len(filepath.VolumeName(path)) + 1
	for len(path) > top && os.IsPathSeparator(path[len(path)-1]) {
		path = path[:len(path)-1]
	}
	return path
}

// explain says for the model what went wrong at an absolute path, in the reference server's words where it has some.
func (c *call) explain(op, path string, err error) error {
	if errors.As(err, new(refusal)) {
		return err // it is in such words
	}
	code := rootfs.IO
	var e *rootfs.Error
	if errors.As(err, &e) {
		code = e.Code
	}
	node := func(name, text, op string) error {
		return refuse(code, "%s: %s, %s '%s'", name, text, op, show(c.real(path)))
	}
	switch code {
	case rootfs.NotFound:
		return node("ENOENT", "no such file or directory", op)
	case rootfs.NotDirectory:
		if op != opScandir {
			op = "realpath"
		}
		return node("ENOTDIR", "not a directory", op)
	case rootfs.IsDirectory:
		return refuse(code, "EISDIR: illegal operation on a directory, read")
	case rootfs.Permission:
		name, text := systemError(err, syscall.EACCES)
		return node(name, text, op)
	case rootfs.Loop:
		return node("ELOOP", "too many symbolic links encountered", "realpath")
	case rootfs.SpecialFile:
		return refuse(code, "Access denied - not a regular file or directory: %s", show(c.real(path)))
	case rootfs.Changed:
		return refuse(code, "Access denied - the path changed while it was looked up: %s", show(c.written(path)))
	case rootfs.InvalidPath:
		switch {
		case strings.Contains(path, "\x00"):
			return c.outside(path)
		case len(path) > 255: // the longest name there can be
			return node("ENAMETOOLONG", "name too long", "realpath")
		}
		return node("EINVAL", "invalid argument", op)
	case rootfs.OutsideRoots:
		return c.outside(path)
	case rootfs.ReadOnly:
		return c.readOnly(path)
	case rootfs.Exists:
		return node("EEXIST", "file already exists", op)
	case rootfs.NotEmpty:
		return node("ENOTEMPTY", "directory not empty", op)
	case rootfs.CrossDevice:
		return node("EXDEV", "cross-device link not permitted", op)
	case rootfs.Denied:
		return c.denied(path)
	case rootfs.Protected:
		return c.own(path)
	case rootfs.HardLink:
		return denial{refusal{string(code), "Access denied - a file with several names (hard links) is not served: " + show(c.real(path))}, reasonHardLink, c.real(path)}
	case rootfs.Mount:
		if !c.sets.options.NoMounts {
			return node("EBUSY", "resource busy or locked", op)
		}
		return denial{refusal{string(code), "Access denied - what lies behind a mount point is not served: " + show(c.real(path))}, reasonMount, c.real(path)}
	case rootfs.AmbiguousName:
		return refuse(code, "Ambiguous Unicode path component: %s", show(filepath.Base(path)))
	case rootfs.Budget:
		return refuse(code, "Too many entries lie beneath it, or too far down: %s", show(c.real(path)))
	case rootfs.IsRoot:
		return refuse(code, "Access denied - an allowed directory, or one that holds it, stays where it is: %s", show(c.real(path)))
	}
	var system *fs.PathError // its path is not the caller's
	switch {
	case e != nil && e.Err != nil:
		err = e.Err
	case errors.As(err, &system):
		err = system.Err
	}
	name, text := systemError(err, syscall.EIO)
	if name == "EIO" {
		text = err.Error()
	}
	return node(name, text, op)
}

// systemErrors are those that say what a person has to do, with the names that the reference server has for them.
var systemErrors = map[syscall.Errno]string{
	syscall.EACCES: "EACCES", syscall.EPERM: "EPERM", syscall.EROFS: "EROFS", syscall.ENOSPC: "ENOSPC", syscall.EDQUOT: "EDQUOT", syscall.EIO: "EIO",
}

// systemError returns the name and the words of what the system said, or those of what stands for all others.
func systemError(err error, other syscall.Errno) (name, text string) {
	var said syscall.Errno
	if !errors.As(err, &said) || systemErrors[said] == "" {
		said = other
	}
	return systemErrors[said], said.Error()
}

// outside says that a path is in no allowed directory. Where a link leads, and whether anything is there, it does not say.
func (c *call) outside(path string) error {
	d, rel, inside := c.set.Match(path)
	for _, p := range c.problems {
		if inside && d.Path == p.Dir.Path {
			return refuse(codeUnavailable, "Access denied - this allowed directory cannot be used now: %s is %s", show(d.Path), p.Trouble)
		}
	}
	what, where, among := "path outside allowed directories", c.written(path), " not in "+strings.Join(c.allowed(), ", ")
	if inside && mayRead(d) && !strings.Contains(path, "\x00") {
		what, where = "symlink target outside allowed directories, or missing", filepath.Join(d.Path, rel)
		if c.sets.options.Links == rootfs.NoLinks {
			what, among = "symbolic links are not followed, wherever they lead", ""
		}
	}
	text := fmt.Sprintf("Access denied - %s: %s%s", what, show(where), among)
	return denial{refusal{string(rootfs.OutsideRoots), text}, reasonOutside, filepath.Clean(path)}
}

// readOnly says that a path is beneath a root whose rights do not allow what was to be done.
func (c *call) readOnly(path string) error {
	real := c.real(path)
	d, _, _ := c.set.Match(real)
	what := "is read-only"
	if mayWrite(d) {
		what = "allows to write, and not to delete or move away"
	}
	text := fmt.Sprintf("Access denied - the allowed directory %s %s: %s", show(d.Path), what, show(real))
	return denial{refusal{string(rootfs.ReadOnly), text}, reasonReadOnly, real}
}

// own says that a path is to a file that steers Rootbound itself, or to what holds one.
func (c *call) own(path string) error {
	real := c.real(path)
	text := fmt.Sprintf("Access denied - this decides what the server may do, or holds what does, and no tool changes it: %s. "+
		"A person can, with a program of their own.", show(real))
	return denial{refusal{string(rootfs.Protected), text}, reasonOwn, real}
}

// allowed returns the paths under which the roots are served.
func (c *call) allowed() []string {
	var list []string
	for _, d := range c.set.Dirs() {
		if !mayRead(d) {
			continue
		}
		list = append(list, show(d.Path))
		for _, s := range d.Spellings {
			if s != d.Path {
				list = append(list, show(s))
			}
		}
	}
	return list
}

// real returns the path without links for a path that leads to something inside by a way inside, else the path as its text
// has it: where links outside lead is not told. It is for names, and nothing is reached by it.
func (c *call) real(path string) string {
	written := c.written(path)
	p, err := rootfs.Locate(c.set, path, rootfs.Process{})
	if err != nil || !p.Inside {
		return written
	}
	if p.Path != written {
		if _, err := c.fs.Stat(path); errors.Is(err, rootfs.OutsideRoots) {
			return written
		}
	}
	return p.Path
}

// written returns a path as its text has it, without "..". With Redact these stay: behind the root that a relative path is
// beneath they name nothing, and what they stand for has a name of this machine.
func (c *call) written(path string) string {
	if c.redact {
		return path
	}
	return filepath.Clean(path)
}

// show returns a path as it is shown: a path that is not text as its URI, and no more than a system takes.
func show(path string) string {
	const longest = 4096
	if !utf8.ValidString(path) {
		if uri := roots.FileURI(path); uri != "" {
			path = uri
		}
	}
	return clip(path, longest)
}

// clip returns the beginning of a text that is longer than so many bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
