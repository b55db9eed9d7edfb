package roots

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// ResolveOptions say what a resolved root is to be. The zero value makes one that allows nothing.
type ResolveOptions struct {
	// Name, Access, Pinned and Origin become those of the Dir.
	Name   string
	Access Access
	Pinned bool
	Origin string
	// AllowBroad takes a broad directory when it is typed as such: by an absolute path, or with ~, that names it without
	// a link. A relative path or a link never makes one.
	AllowBroad bool
}

// Resolve looks at what path names and makes a root of it. A relative path starts from the working directory, and ~ or
// ~/ at the beginning is the home directory (~name is not looked up). Every link is followed. What is not there, cannot
// be opened by this process, is neither a directory nor a regular file, or is broad is refused. An error is an *Error.
func Resolve(path string, o ResolveOptions) (Dir, error) {
	refuse := func(r Reason, fix string, err error) (Dir, error) {
		return Dir{}, &Error{Root: path, Reason: r, Fix: fix, Err: err}
	}
	typed := path
	switch {
	case path == "":
		return refuse(NotAbsolute, "write a directory", nil)
	case strings.Contains(path, "\x00"):
		return refuse(HasNUL, "no file name has one", nil)
	case path == "~" || path[0] == '~' && os.IsPathSeparator(path[1]):
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return refuse(Missing, "the home directory is not known: write the whole path", err)
		}
		typed = home + path[1:]
	}
	relative := !filepath.IsAbs(typed)
	if relative {
		// Joined as text, not cleaned: the system takes ".." after a link as the parent of where the link leads.
		cwd, err := os.Getwd()
		if err != nil {
			return refuse(Missing, "the working directory is gone: write the whole path", err)
		}
		if filepath.VolumeName(typed) != "" || os.IsPathSeparator(typed[0]) { // "C:x" and "\x" on Windows
			if typed, err = filepath.Abs(typed); err != nil {
				return refuse(NotAbsolute, "write the whole path", err)
			}
		} else {
			typed = cwd + string(filepath.Separator) + typed
		}
	}
	real, err := filepath.EvalSymlinks(typed)
	if err != nil {
		return refuseUnopened(path, err)
	}
	d := Dir{
		Path:      real,
		Spellings: []string{real},
		Name:      o.Name,
		Access:    o.Access,
		Pinned:    o.Pinned,
		Origin:    o.Origin,
	}
	if err := d.look(); err != nil {
		return refuseUnopened(path, err)
	}
	written := filepath.Clean(typed)
	if !d.File && isBroad(real) && !(o.AllowBroad && !relative && namesBroad(written)) {
		fix := "name a directory inside it, or allow it where it is configured"
		if o.AllowBroad {
			fix = "name a directory inside it, or write " + real + " itself"
		}
		return refuse(TooBroad, fix, nil)
	}
	// Cleaning takes ".." as text, so what is left may be another place.
	if written != real && !(namesFold && strings.EqualFold(written, real)) {
		if again, err := filepath.EvalSymlinks(written); err == nil && again == real {
			d.Spellings = append(d.Spellings, written)
		}
	}
	return d, nil
}

// Refresh looks again at what d was resolved to. It refuses a path that leads to another place now, or to a file instead
// of a directory; a directory that took the place of the old one has another ID. An error is an *Error.
func (d Dir) Refresh() (Dir, error) {
	real, err := filepath.EvalSymlinks(d.Path)
	if err != nil {
		return refuseUnopened(d.Path, err)
	}
	moved := &Error{Root: d.Path, Reason: Moved, Fix: "put it back, or name the place that is meant now"}
	if real != d.Path {
		return Dir{}, moved
	}
	now := d.clone()
	if err := now.look(); err != nil {
		return refuseUnopened(d.Path, err)
	}
	if now.File != d.File {
		return Dir{}, moved
	}
	return now, nil
}

// ResolveList makes roots of a list as told, such as a client's answer to roots/list. Each URI is read by parse, which is
// ParseURI or StrictURI; a root keeps its own name, and has the rest from o. What is refused is reported by its URI and
// does not touch the others. Of a list of more than 1,000 roots the rest is refused as one.
func ResolveList(list []Root, parse func(uri string) (string, error), o ResolveOptions) (dirs []Dir, bad []*Error) {
	const most = 1000 // what comes of a list takes time by its square
	for i, r := range list {
		if i == most {
			return dirs, append(bad, &Error{Root: r.URI, Reason: TooMany, Fix: "name the directories that hold them"})
		}
		path, err := parse(r.URI)
		if err == nil {
			var d Dir
			o.Name = r.Name
			if d, err = Resolve(path, o); err == nil {
				dirs = append(dirs, d)
				continue
			}
		}
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Reason: NotFile, Err: err}
		}
		e.Root = r.URI
		bad = append(bad, e)
	}
	return dirs, bad
}

var errKind = errors.New("not a directory and not a regular file")

func refuseUnopened(path string, err error) (Dir, error) {
	e := &Error{Root: path, Reason: Unopenable, Fix: "check the path and what it leads through", Err: bare(err)}
	switch {
	case errors.Is(err, errKind):
		e.Reason, e.Fix, e.Err = WrongKind, "name a directory, or a regular file", nil
	case errors.Is(err, fs.ErrNotExist):
		e.Reason, e.Fix, e.Err = Missing, "make it, or correct the path", nil
		if strings.HasPrefix(path, "~") && path != "~" && !os.IsPathSeparator(path[1]) {
			e.Fix = "only ~ and ~/ are expanded: write the whole path"
		}
	case errors.Is(err, fs.ErrPermission):
		e.Fix = "let this user read it, or take it out of the list"
	}
	return Dir{}, e
}

// bare takes the path out of an error that is told with the path.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// look opens what is at Path and fills in what is known of it: its kind, identity and ancestors.
func (d *Dir) look() error {
	info, err := os.Lstat(d.Path)
	if err != nil {
		return err
	}
	// A device is not even opened: for some that is an effect.
	if !info.IsDir() && !info.Mode().IsRegular() {
		return errKind
	}
	f, err := os.OpenFile(d.Path, os.O_RDONLY|openNonblock|openNoFollow, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return errKind
	}
	d.File = !info.IsDir()
	if d.ID, err = identify(f, info); err != nil {
		return err
	}
	if namesFold {
		d.ancestors = ancestors(d.Path)
	}
	return nil
}

// ancestors returns the identities of the directories above path, the nearest first. What cannot be looked at is left
// out.
func ancestors(path string) []FileID {
	var ids []FileID
	for dir := filepath.Dir(path); dir != path; path, dir = dir, filepath.Dir(dir) {
		if id, err := identityOf(dir); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Broad reports whether path is, or leads to, a directory so wide that naming it says little: the top of the disk, a
// drive, a home directory, or a directory that holds home directories. Resolve refuses those that were not typed as such.
func Broad(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return true
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return isBroad(real)
	}
	return namesBroad(abs)
}

// isBroad reports whether the directory at the resolved path is broad, by its text or by its identity.
func isBroad(path string) bool {
	broad := broadDirs()
	if isNamed(path, broad) {
		return true
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	parent, err := os.Stat(filepath.Dir(path))
	for _, dir := range broad {
		other, e := os.Stat(dir)
		if e == nil && (os.SameFile(info, other) || err == nil && isHolder(dir) && os.SameFile(parent, other)) {
			return true
		}
	}
	return false
}

// namesBroad reports whether a clean absolute path is the name of a broad directory.
func namesBroad(path string) bool { return isNamed(path, broadDirs()) }

// isNamed is the same, of which the broad directories are known.
func isNamed(path string, broad []string) bool {
	same := func(dir string) bool { return dir == path || namesFold && strings.EqualFold(dir, path) }
	if filepath.Dir(path) == path && !strings.HasPrefix(path, `\\`) || slices.ContainsFunc(broad, same) {
		return true
	}
	return isHolder(filepath.Dir(path))
}

// knownHolders are the directories beneath which each user has a home.
var knownHolders = []string{"/home", "/Users", "/var/home", "/usr/home", "/export/home"}

func isHolder(dir string) bool {
	if filepath.VolumeName(dir) != "" {
		return len(dir) > 2 && (strings.EqualFold(dir[2:], `\Users`) || strings.EqualFold(dir[2:], `\Documents and Settings`))
	}
	return slices.ContainsFunc(knownHolders, func(h string) bool { return h == dir || namesFold && strings.EqualFold(h, dir) })
}

// broadDirs returns this user's home directories, as written and resolved, and the directories that hold homes: those
// that are known, and everything above a home of this user. Each is there once.
func broadDirs() []string {
	var home []string
	if dir, err := os.UserHomeDir(); err == nil {
		home = append(home, dir)
	}
	if u, err := user.Current(); err == nil {
		home = append(home, u.HomeDir)
	}
	var broad []string
	add := func(dir string) {
		if !slices.Contains(broad, dir) {
			broad = append(broad, dir)
		}
	}
	home = append(home, superuserHome)
	for i, dir := range home {
		if dir = filepath.Clean(dir); !filepath.IsAbs(dir) || slices.Contains(home[:i], home[i]) {
			continue
		}
		for _, s := range []string{dir, resolved(dir)} {
			for ; ; s = filepath.Dir(s) {
				add(s)
				if s == filepath.Dir(s) {
					break
				}
			}
		}
	}
	for _, dir := range knownHolders {
		add(dir)
	}
	return broad
}

// resolved is a path without links, as far as it can be known.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
