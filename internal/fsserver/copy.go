package fsserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rootbound/rootbound/rootfs"
)

// opCopyfile is what is done, as the reference server's errors name it.
const opCopyfile = "copyfile"

const (
	// maxCopied is how many bytes one call copies at most, so that none fills a disk or takes for ever.
	maxCopied int64 = 1 << 30
	// maxCopiedEntries is how many entries a directory that is copied may hold in all.
	maxCopiedEntries = 10_000
	// maxCopiedDepth is how many directories may lie in each other: each level is reached from the root again.
	maxCopiedDepth = 256
)

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
	refused: func(c *call) error {
		_, err := c.at(opCopyfile, c.args.text("source"), func(path string) error {
			_, err := c.fs.Stat(path)
			return err
		})
		if d := (denial{}); errors.As(err, &d) {
			return err
		}
		return c.refused(rootfs.ToWrite, "destination", opOpen)
	},
	run: runCopyFile,
}

// copyBounded copies a file from its beginning to its end, or refuses one that is too long beside what the call has copied: a
// file may be longer than it says.
func (c *call) copyBounded(w io.Writer, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	n, room := info.Size(), maxCopied-c.copied.Load()
	if n <= room {
		n, err = io.Copy(w, countingReader{io.NewSectionReader(f, 0, room+1), &c.copied})
	}
	if err == nil && n > room {
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
	switch {
	case errors.Is(err, rootfs.Exists) && o.Must == rootfs.Absent:
		return answer{}, refuse(rootfs.Exists, "Destination already exists: %s. With overwrite, a file is replaced.", show(c.real(destination)))
	case err != nil:
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
	text := plural(int64(n.files), "file", "files") + ", " + plural(int64(n.directories), "directory", "directories")
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
	switch {
	case notServed(d.Err):
		return nil // it was counted, and is not made
	case d.Err != nil:
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

// notServed reports whether what is in a directory that may be read is denied, or lies in a root that allows nothing.
func notServed(err error) bool {
	return errors.Is(err, rootfs.Denied) || errors.Is(err, rootfs.OutsideRoots)
}

// file copies one file, if it is served.
func (n *treeCopy) file(d *rootfs.Directory, name, to string) error {
	f, err := d.Open(name)
	switch {
	case notServed(err):
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
