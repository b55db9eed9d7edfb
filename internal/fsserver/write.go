package fsserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
)

// What is done, as the reference server's errors name it.
const (
	opMkdir    = "mkdir"
	opCopyfile = "copyfile"
)

const (
	// maxCopied is how many bytes one call copies at most, so that none fills a disk or takes for ever.
	maxCopied int64 = 1 << 30
	// maxCopiedEntries is how many entries a directory that is copied may hold in all.
	maxCopiedEntries = 10_000
	// maxCopiedDepth is how many directories may lie in each other: each level is reached from the root again.
	maxCopiedDepth = 256
)

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
	schema: aString.says("The version that the file must still have, as get_file_info tells it. When the file has changed since, nothing is " +
		"written. The answer tells the new version"),
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

var copyFile = tool{
	name:  "copy_file",
	title: "Copy File",
	description: "Copy a file, or a directory with all that is in it. Symbolic links in a directory are left out. The directory of the " +
		"destination must exist. When there is something at the destination, nothing is copied, but for a file with " +
		"'overwrite'. Both source and destination must be within allowed directories.",
	params: []param{
		{name: "source", schema: aString, required: true},
		{name: "destination", schema: aString, required: true},
		{name: "overwrite", schema: aBoolean.says("Replace a file at the destination. A directory is never replaced")},
	},
	annotations: changes,
	extra:       true,
	writes:      true,
	run:         runCopyFile,
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
			err.text += fmt.Sprintf(". They are in different file systems: %s copies it, and %s deletes the source", copyFile.name, deletePath.name)
		}
		return err
	case rootfs.Denied:
		return refuse(e.Code, "Access denied - one of these names, or one beneath them, is not served: %s, %s", show(c.real(from)), show(c.real(to)))
	}
	if e.Path == to {
		from = to
	}
	return c.explain(op, from, err)
}

// copyBounded copies a file from its beginning to its end, or refuses one that is too long.
func (c *call) copyBounded(w io.Writer, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	n := info.Size()
	if n <= maxCopied {
		n, err = io.Copy(w, countingReader{io.NewSectionReader(f, 0, maxCopied+1), &c.copied}) // it may have grown
	}
	if err == nil && n > maxCopied {
		err = refuse(codeTooLarge, "EFBIG: file too large: one call copies at most %d bytes", maxCopied)
	}
	return err
}

// runCopyFile copies a file or a directory.
func runCopyFile(c *call) (answer, error) {
	defer c.report(&c.copied, "bytes copied")()
	from, to := c.args.text("source"), c.args.text("destination")
	var info fs.FileInfo
	source, err := c.at(opCopyfile, from, func(path string) (err error) {
		info, err = c.fs.Stat(path)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	destination, err := c.target(to)
	if err != nil {
		return answer{}, err
	}
	copied := "Successfully copied " + show(from) + " to " + show(to)
	if info.IsDir() {
		done, err := c.copyDirectory(source, destination)
		return answer{text: copied + ": " + done}, err
	}
	f, err := c.fs.Open(source)
	if err != nil {
		return answer{}, c.explain(opCopyfile, source, err)
	}
	defer f.Close()
	o := rootfs.ReplaceOptions{Must: rootfs.Absent, Perm: info.Mode()}
	if c.args.is("overwrite") {
		o.Must = rootfs.Anything
	}
	_, err = c.fs.Replace(c.ctx, destination, o, func(w io.Writer, _ *os.File) error { return c.copyBounded(w, f) })
	if err != nil {
		return answer{}, c.explainWrite(destination, o, err)
	}
	return answer{text: copied}, nil
}

// copyDirectory copies a directory to a path where nothing is. What it has copied when something goes wrong stays.
func (c *call) copyDirectory(source, destination string) (string, error) {
	from, to := c.real(source), c.real(destination)
	switch _, err := c.fs.Lstat(destination); {
	case err == nil:
		return "", refuse(rootfs.Exists, "Destination already exists: %s", show(to))
	case !errors.Is(err, rootfs.NotFound):
		return "", c.explain(opCopyfile, destination, err)
	case within(to, from):
		return "", refuse(rootfs.IntoItself, "EINVAL: invalid argument, cp '%s' -> '%s': a directory cannot be copied into itself", show(from), show(to))
	}
	if parent := filepath.Dir(destination); parent != destination {
		if _, err := c.fs.Stat(parent); err != nil {
			return "", c.explain(opMkdir, destination, err)
		}
	}
	n := treeCopy{call: c, to: destination, entered: 1}
	walked, err := c.fs.Walk(c.ctx, source, rootfs.WalkOptions{MaxEntries: maxCopiedEntries, MaxDepth: maxCopiedDepth, Workers: 1}, n.visit)
	switch {
	case err != nil:
		return "", c.explain(opCopyfile, source, err)
	case n.err != nil:
		return "", n.failed()
	case walked.Cut:
		n.err = refuse(codeTooLarge, "it holds more than %d entries, and one call copies no more", maxCopiedEntries)
		return "", n.failed()
	case walked.TooDeep > 0:
		n.err = refuse(codeTooLarge, "it holds more than %d directories in each other, and one call copies no more", maxCopiedDepth)
		return "", n.failed()
	}
	text := fmt.Sprintf("%d files, %d directories", n.files, n.directories)
	if left := n.left + n.entered - n.directories; left > 0 {
		text += fmt.Sprintf("; left out: %d (symbolic links, special files, names that are not served)", left)
	}
	return text, nil
}

// within reports whether a clean path is another one or beneath it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// treeCopy is the copying of one directory.
type treeCopy struct {
	*call
	to                 string
	files, directories int
	entered            int // directories to be copied; those that are not served never come
	left               int
	bytes              int64
	err                error // the first, which ends it
}

func (n *treeCopy) visit(d *rootfs.Directory) []rootfs.Entry {
	if n.err != nil {
		return nil
	}
	to := filepath.Join(n.to, filepath.FromSlash(d.Path))
	if d.Err != nil {
		n.err = n.explain(opScandir, to, d.Err)
		return nil
	}
	if err := n.fs.MkdirAll(to); err != nil {
		n.err = n.explain(opMkdir, to, err)
		return nil
	}
	n.directories++
	var enter []rootfs.Entry
	for _, e := range d.Entries {
		switch {
		case e.Type.IsDir():
			n.entered++
			enter = append(enter, e)
		case e.Type != 0:
			n.left++
		default:
			if n.err = n.file(d, e.Name, filepath.Join(to, e.Name)); n.err != nil {
				return nil
			}
		}
	}
	return enter
}

// file copies one file, if it is served.
func (n *treeCopy) file(d *rootfs.Directory, name, to string) error {
	f, err := d.Open(name)
	switch {
	case errors.Is(err, rootfs.Denied):
		n.left++
		return nil
	case err != nil:
		return n.explain(opCopyfile, to, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return n.explain(opCopyfile, to, err)
	}
	if n.bytes += info.Size(); n.bytes > maxCopied {
		return refuse(codeTooLarge, "it holds more than %d bytes, and one call copies no more", maxCopied)
	}
	o := rootfs.ReplaceOptions{Must: rootfs.Absent, Perm: info.Mode()}
	_, err = n.fs.Replace(n.ctx, to, o, func(w io.Writer, _ *os.File) error { return n.copyBounded(w, f) })
	if err != nil {
		return n.explainWrite(to, o, err)
	}
	n.files++
	return nil
}

// failed says what went wrong, and what is there now.
func (n *treeCopy) failed() error {
	if n.directories == 0 {
		return n.err
	}
	r := refusal{code: string(rootfs.IO), text: n.err.Error()}
	errors.As(n.err, &r)
	return refuse(r.code, "The directory was copied in part, %d files of it, to %s: %s", n.files, show(n.real(n.to)), r.text)
}

var editFile = tool{
	name:  "edit_file",
	title: "Edit File",
	description: "Change parts of a text file. Each edit puts newText in the place of oldText, which must be in the file exactly once; " +
		"lines that differ only in the blanks around them are found too, and keep the indentation of the file. The edits " +
		"are made one after the other, all or none. Everything else in the file stays as it is, and line ends are those of the file. " +
		"The answer is a diff of what changed, with dryRun of what would. " + onlyWithin,
	params: []param{
		aPath,
		{name: "edits", required: true, schema: schema{kind: "array", items: &schema{kind: "object", members: []param{
			{name: "oldText", schema: aString.says("The text to look for, exactly as it is in the file"), required: true},
			{name: "newText", schema: aString.says("The text to put in its place"), required: true},
			{name: "replaceAll", schema: aBoolean.says("Replace oldText wherever it is, and not only when it is there once"), extra: true},
		}}}},
		{name: "dryRun", schema: aBoolean.says("Show what would change, as a diff, and change nothing")},
		aVersion,
	},
	annotations: changes,
	writes:      true,
	run:         runEditFile,
}

// editing holds back edits while others have their files in memory.
var editing = make(chan struct{}, 4)

// errUnchanged ends a replacement that would change nothing.
var errUnchanged = errors.New("unchanged")

// runEditFile edits one file. It is read while it is being replaced, so that no two edits of a file begin with the same text.
func runEditFile(c *call) (answer, error) {
	select {
	case editing <- struct{}{}:
		defer func() { <-editing }()
	case <-c.ctx.Done():
		return answer{}, c.ctx.Err()
	}
	path, err := c.target(c.args.text("path"))
	if err != nil {
		return answer{}, err
	}
	edits := c.edits()
	o := rootfs.ReplaceOptions{Must: rootfs.Present, Version: c.args.text("version")}
	var before, after *document
	edit := func(old *os.File) (err error) {
		if before, err = c.readDocument(path, old); err == nil {
			after, err = before.applyEdits(c.ctx, edits, c.severalMatches())
		}
		return err
	}
	var info fs.FileInfo
	if c.args.is("dryRun") {
		err = c.tryEdit(path, o.Version, edit)
	} else {
		info, err = c.fs.Replace(c.ctx, path, o, func(w io.Writer, old *os.File) error {
			if err := edit(old); err != nil {
				return err
			}
			if after.equal(before) {
				return errUnchanged
			}
			_, err := w.Write(after.raw())
			return err
		})
	}
	switch {
	case errors.Is(err, rootfs.IsDirectory):
		return answer{}, c.explain(opOpen, path, err)
	case err != nil && err != errUnchanged:
		return answer{}, c.explainWrite(path, o, err)
	}
	return answer{text: showDiff(show(c.real(path)), before.text, after.text) + c.newVersion("", info)}, nil
}

// tryEdit makes edits of a file that is not to be changed, if it might be.
func (c *call) tryEdit(path, version string, edit func(*os.File) error) error {
	f, err := c.fs.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if d, _, inside := c.set.Match(c.real(path)); inside && !mayWrite(d) {
		return c.readOnly(path)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case version != "" && version != rootfs.Version(info):
		return rootfs.Changed
	}
	return edit(f)
}

// readDocument reads a file to edit.
func (c *call) readDocument(path string, f *os.File) (*document, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	raw := bytes.NewBuffer(make([]byte, 0, min(info.Size(), maxEdited)+bytes.MinRead))
	if _, err := raw.ReadFrom(io.LimitReader(f, maxEdited+1)); err != nil {
		return nil, err
	}
	if raw.Len() > maxEdited {
		return nil, refuse(codeTooLarge, "EFBIG: file too large, edit '%s': it has more than %d bytes, and edit_file takes no larger one. "+
			"Change it with a program of its own, as sed, or split it.", show(c.real(path)), maxEdited)
	}
	return parseDocument(raw.Bytes()), nil
}

// severalMatches says what can be done about a text that is found several times.
func (c *call) severalMatches() string {
	or := ", or set replaceAll to replace all of them"
	if c.compat {
		or = ""
	}
	return "Nothing was changed. Give more of the text around the one that is meant" + or + "."
}

// edits reads the argument of edit_file.
func (c *call) edits() []textEdit {
	var edits []textEdit
	for item := range wire.Items(c.args["edits"]) {
		text := func(name string) string { v, _ := wire.Get(item, name); return unquote(v) }
		all, _ := wire.Get(item, "replaceAll")
		edits = append(edits, newEdit(text("oldText"), text("newText"), !c.compat && string(all) == "true"))
	}
	return edits
}
