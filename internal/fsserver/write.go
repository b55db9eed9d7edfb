package fsserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/rootbound/rootbound/rootfs"
)

// opMkdir is what is done, as the reference server's errors name it.
const opMkdir = "mkdir"

// Annotations of tools that change something.
const (
	overwrites = `{"readOnlyHint":false,"idempotentHint":true,"destructiveHint":true,"openWorldHint":false}`
	changes    = `{"readOnlyHint":false,"idempotentHint":false,"destructiveHint":true,"openWorldHint":false}`
	creates    = `{"readOnlyHint":false,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}`
	adds       = `{"readOnlyHint":false,"idempotentHint":false,"destructiveHint":false,"openWorldHint":false}`
)

// aVersion is the parameter that protects a file against changes that the model has not seen.
var aVersion = param{
	name: "version",
	schema: aString.says("The version that the file must still have, as get_file_info told it before the file was read. When the file has " +
		"changed since, nothing is written. The answer tells the new version"),
	extra: true,
}

var writeFile = tool{
	name:  "write_file",
	title: "Write File",
	description: "Write a text file: make a new one, or replace all that is in an old one, which is lost. Who reads it meanwhile sees " +
		"the old text or the new one. To change a part of a file, edit_file is safer. Its directory must exist. " + onlyWithin,
	params:      []param{aPath, {name: "content", schema: aString, required: true}, aVersion},
	annotations: overwrites,
	writes:      true,
	refused:     refusedWrite,
	run: func(c *call) (answer, error) {
		arg, content := c.args.text("path"), c.args.text("content")
		info, err := c.write(arg, rootfs.ReplaceOptions{Version: c.args.text("version")}, func(w io.Writer, _ *os.File) error {
			_, err := io.WriteString(w, content)
			return err
		})
		if err != nil {
			return answer{}, err
		}
		return answer{text: "Successfully wrote to " + show(arg) + c.newVersion("\n", info)}, nil
	},
}

var appendFile = tool{
	name:  "append_file",
	title: "Append to File",
	description: "Write text behind all that is in a file, as it is given: no line end is added before or after it. A file that does " +
		"not exist is made; its directory must exist. " + onlyWithin,
	params:      []param{aPath, {name: "content", schema: aString, required: true}, aVersion},
	annotations: adds,
	extra:       true,
	writes:      true,
	refused:     refusedWrite,
	run: func(c *call) (answer, error) {
		arg, content := c.args.text("path"), c.args.text("content")
		info, err := c.write(arg, rootfs.ReplaceOptions{Version: c.args.text("version")}, func(w io.Writer, old *os.File) error {
			if old != nil {
				if err := c.copyBounded(w, old); err != nil {
					return err
				}
			}
			_, err := io.WriteString(w, content)
			return err
		})
		if err != nil {
			return answer{}, err
		}
		return answer{text: "Successfully appended to " + show(arg) + c.newVersion("\n", info)}, nil
	},
}

var createDirectory = tool{
	name:  "create_directory",
	title: "Create Directory",
	description: "Make a directory, with all directories above it that are missing. One that exists already is left as it is, and that " +
		"is no error. " + onlyWithin,
	params:      []param{aPath},
	annotations: creates,
	writes:      true,
	refused:     func(c *call) error { return c.refused(rootfs.ToMake, "path", opMkdir) },
	run: func(c *call) (answer, error) {
		arg := c.args.text("path")
		path, err := c.target(arg)
		if err == nil {
			if err = c.fs.MkdirAll(path); err != nil {
				err = c.explain(opMkdir, path, err)
			}
		}
		return answer{text: "Successfully created directory " + show(arg)}, err
	},
}

var moveFile = tool{
	name:  "move_file",
	title: "Move File",
	description: "Give a file or a directory another path: rename it, move it elsewhere, or both. Nothing is overwritten: when there is " +
		"something at the destination, nothing is moved. A symbolic link is moved itself, and not what it leads to. The " +
		"directory of the destination must exist. " +
		"Both source and destination must be within allowed directories.",
	params: []param{
		{name: "source", schema: aString, required: true},
		{name: "destination", schema: aString, required: true},
	},
	annotations: changes,
	writes:      true,
	refused: func(c *call) error {
		source, err := c.target(c.args.text("source"))
		if err != nil {
			return err
		}
		destination, err := c.target(c.args.text("destination"))
		if err != nil {
			return err
		}
		if err = c.fs.May(rootfs.ToTake, source); err == nil {
			err = c.fs.May(rootfs.ToPut, destination)
		}
		if isRefused(err) {
			return c.explainTwo("rename", source, destination, err)
		}
		return nil
	},
	run: func(c *call) (answer, error) {
		from, to := c.args.text("source"), c.args.text("destination")
		source, err := c.target(from)
		if err != nil {
			return answer{}, err
		}
		destination, err := c.target(to)
		if err != nil {
			return answer{}, err
		}
		if err := c.fs.Move(source, destination); err != nil {
			return answer{}, c.explainTwo("rename", source, destination, err)
		}
		return answer{text: "Successfully moved " + show(from) + " to " + show(to)}, nil
	},
}

// refused says why what an argument means may not be changed at all.
func (c *call) refused(change rootfs.Change, argument, op string) error {
	path, err := c.target(c.args.text(argument))
	if err != nil {
		return err
	}
	if err = c.fs.May(change, path); isRefused(err) {
		return c.explain(op, path, err)
	}
	return nil
}

func refusedWrite(c *call) error { return c.refused(rootfs.ToWrite, "path", opOpen) }

// isRefused reports whether an error is because of where a path leads, and not of what is there.
func isRefused(err error) bool {
	for _, code := range []rootfs.Code{rootfs.OutsideRoots, rootfs.ReadOnly, rootfs.Denied, rootfs.Protected, rootfs.IsRoot} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// write replaces a file, or makes it, and explains what went wrong.
func (c *call) write(arg string, o rootfs.ReplaceOptions, write func(w io.Writer, old *os.File) error) (fs.FileInfo, error) {
	path, err := c.target(arg)
	if err != nil {
		return nil, err
	}
	info, err := c.fs.Replace(c.ctx, path, o, write)
	if err != nil {
		return nil, c.explainWrite(path, o, err)
	}
	return info, nil
}

// explainWrite says what went wrong when a file was to be written.
func (c *call) explainWrite(path string, o rootfs.ReplaceOptions, err error) error {
	switch {
	case errors.As(err, new(refusal)), c.ctx.Err() != nil:
		return err
	case errors.Is(err, rootfs.IsDirectory):
		return refuse(rootfs.IsDirectory, "EISDIR: illegal operation on a directory, open '%s'", show(c.real(path)))
	case errors.Is(err, rootfs.Exists):
		return refuse(rootfs.Exists, "Destination already exists: %s", show(c.real(path)))
	case errors.Is(err, rootfs.Changed) && o.Version != "":
		return refuse(rootfs.Changed, "The file has changed since version %.100s, so nothing was written: %s. Read it again and see what is to be done now.",
			o.Version, show(c.real(path)))
	case errors.Is(err, rootfs.Changed):
		return refuse(rootfs.Changed, "Another program changed the file at the same moment, so nothing was written: %s", show(c.real(path)))
	}
	return c.explain(opOpen, path, err)
}

// newVersion tells the version of a file that was written to who has asked for the old one.
func (c *call) newVersion(before string, info fs.FileInfo) string {
	if c.args.text("version") == "" || info == nil {
		return ""
	}
	return before + "version: " + rootfs.Version(info)
}

// target returns the path that an argument means for what may not exist yet. A relative one is beneath the first root where
// there is something; else the first that may be written and has the directory above it; else the first that may be
// written.
func (c *call) target(arg string) (string, error) {
	paths, err := c.paths(arg)
	switch {
	case err != nil:
		return "", err
	case len(paths) == 1:
		return paths[0], nil
	}
	there := func(path string) bool {
		_, err := c.fs.Lstat(path)
		return !errors.Is(err, rootfs.NotFound) && !errors.Is(err, rootfs.OutsideRoots)
	}
	if i := slices.IndexFunc(paths, there); i >= 0 {
		return paths[i], nil
	}
	writable := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		d, _, _ := c.set.Match(path)
		return !mayWrite(d)
	})
	if i := slices.IndexFunc(writable, func(path string) bool { return there(filepath.Dir(path)) }); i >= 0 {
		return writable[i], nil
	}
	return append(writable, paths...)[0], nil
}

// explainTwo says what went wrong when something was to go from one path to another.
func (c *call) explainTwo(op, from, to string, err error) error {
	var e *rootfs.Error
	if !errors.As(err, &e) {
		return c.explain(op, from, err)
	}
	both := func(name, text string) error {
		return refuse(e.Code, "%s: %s, %s '%s' -> '%s'", name, text, op, show(c.real(from)), show(c.real(to)))
	}
	switch e.Code {
	case rootfs.Exists:
		return refuse(e.Code, "Destination already exists: %s", show(c.real(to)))
	case rootfs.NotFound:
		return both("ENOENT", "no such file or directory")
	case rootfs.IntoItself:
		return both("EINVAL", "invalid argument")
	case rootfs.CrossDevice:
		err := both("EXDEV", "cross-device link not permitted").(refusal)
		if !c.compat {
			err.text += fmt.Sprintf(". They are in different file systems, or it is a directory of a lower layer (overlayfs), as in a container: %s copies it",
				copyFile.name)
		}
		return err
	case rootfs.Permission:
		return both(systemError(err, syscall.EACCES))
	case rootfs.Mount:
		if !c.sets.options.NoMounts {
			return both("EBUSY", "resource busy or locked")
		}
	case rootfs.Denied:
		text := fmt.Sprintf("Access denied - one of these names, or one beneath them, is not served: %s, %s", show(c.real(from)), show(c.real(to)))
		return denial{refusal{string(e.Code), text}, reasonName, c.real(from)}
	}
	if e.Path == to && e.Code != rootfs.Budget { // too much is beneath the source
		from = to
	}
	return c.explain(op, from, err)
}
