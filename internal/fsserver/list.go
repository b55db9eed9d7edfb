package fsserver

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// maxList is the longest list, in bytes.
const maxList = 1 << 20

var listDirectory = tool{
	name:  "list_directory",
	title: "List Directory",
	description: "List what is in a directory, one name a line, with [DIR] before the name of a directory and [FILE] before every " +
		"other. What is in its subdirectories is not listed. A name that cannot be written as text comes as a file:// URI, which " +
		"every tool takes as a path. " + onlyWithin,
	params:      []param{aPath, cursorParam},
	annotations: readOnly,
	run:         runListDirectory,
}

// runListDirectory lists one directory, by name.
func runListDirectory(c *call) (answer, error) {
	last, err := c.cursor()
	switch {
	case err != nil:
		return answer{}, err
	case strings.Contains(last, "/"):
		return answer{}, c.badCursor()
	}
	var entries []rootfs.Entry
	path, err := c.at(opScandir, c.args.text("path"), func(path string) (err error) {
		entries, err = c.fs.ReadDir(path)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	uri := func(name string) string { return roots.FileURI(filepath.Join(c.real(path), name)) }
	return answer{bytes: c.list(behind(entries, last), maxList, uri)}, nil
}

// list writes the names one a line, up to about a number of bytes, and how many are left out. A name that is not text is
// written as uri has it.
func (c *call) list(entries []rootfs.Entry, most int, uri func(name string) string) []byte {
	text := c.lent.take(min(32*len(entries), 2*most))
	for i, e := range entries {
		if len(text) >= most {
			return fmt.Appendf(text, "\n%s not listed, because one answer carries at most %d bytes of them.%s",
				plural(int64(len(entries)-i), "more name is", "more names are"), most, c.goOn(cursorAt(entries[i-1].Name)))
		}
		if i > 0 {
			text = append(text, '\n')
		}
		kind, name := "[FILE] ", e.Name
		if e.Type == fs.ModeDir {
			kind = "[DIR] "
		}
		if !utf8.ValidString(name) {
			name = uri(name)
		}
		text = append(append(text, kind...), name...)
	}
	return text
}

var listDirectoryWithSizes = tool{
	name:  "list_directory_with_sizes",
	title: "List Directory with Sizes",
	description: "List what is in a directory, one name a line, with the sizes of files, and how many there are and how large they are " +
		"together. The size of a link is its own and not that of what it leads to. What is in subdirectories is not listed. " + onlyWithin,
	params: []param{
		aPath,
		{name: "sortBy", schema: schema{kind: "string", description: "Sort by name, or by size, the largest first", value: `"name"`, options: []string{"name", "size"}}},
		cursorParam,
	},
	annotations: readOnly,
	run: func(c *call) (answer, error) {
		bySize := c.args.text("sortBy") == "size"
		last, err := c.sizedCursor(bySize)
		if err != nil {
			return answer{}, err
		}
		var entries []sizedEntry
		w, err := c.walk(c.args.text("path"), rootfs.WalkOptions{MaxDepth: 1}, func(ctx context.Context, _ string) (func(*rootfs.Directory) []rootfs.Entry, error) {
			return func(d *rootfs.Directory) []rootfs.Entry {
				c.found(func() {
					entries = make([]sizedEntry, len(d.Entries))
					for i, e := range d.Entries {
						entries[i] = sizedEntry{Entry: e}
					}
				})
				c.sizes(ctx, d, bySize, func(i int, size int64) { entries[i].size = size })
				return nil
			}, nil
		})
		if err != nil {
			return answer{}, err
		}
		order := func(a, b sizedEntry) int {
			if bySize && a.size != b.size {
				return cmp.Compare(b.size, a.size)
			}
			return compareName(a.Entry, b.Name)
		}
		slices.SortFunc(entries, order)
		from := 0
		if last != nil {
			var found bool
			if from, found = slices.BinarySearchFunc(entries, *last, order); found {
				from++
			}
		}
		uri := func(name string) string { return roots.FileURI(filepath.Join(w.start, name)) }
		text := c.listSizes(entries, from, maxList, bySize, uri)
		if w.late {
			text += fmt.Sprintf("\nNot every size is known: they were not told within %v, and are shown as 0 B.", maxWalk)
		}
		return answer{text: text}, nil
	},
}

// sizedCursor returns the entry behind which a list goes on, nil for none. It may be gone from the directory.
func (c *call) sizedCursor(bySize bool) (*sizedEntry, error) {
	last, err := c.cursor()
	if err != nil || last == "" {
		return nil, err
	}
	size, name, sized := strings.Cut(last, "/")
	switch {
	case sized != bySize: // a cursor of the other order
		return nil, c.badCursor()
	case !sized:
		return &sizedEntry{Entry: rootfs.Entry{Name: last}}, nil
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return nil, c.badCursor()
	}
	return &sizedEntry{Entry: rootfs.Entry{Name: name}, size: n}, nil
}

// sizedEntry is an entry with its size in bytes, which is 0 when it cannot be described.
type sizedEntry struct {
	rootfs.Entry
	size int64
}

// sizes tells the size of each entry of a directory, those of directories if they are wanted: nobody is shown them. Tell is called
// inside found.
func (c *call) sizes(ctx context.Context, d *rootfs.Directory, directories bool, tell func(i int, size int64)) {
	for i, e := range d.Entries {
		if ctx.Err() != nil {
			return
		}
		c.slot.moves()
		if e.Type.IsDir() && !directories {
			continue
		}
		if info, err := d.Stat(e.Name); err == nil {
			c.found(func() { tell(i, info.Size()) })
		}
	}
}

// listSizes writes the names and sizes one a line, from one of them on, up to about a number of bytes, and what all of them are
// together. A name that is not text is written as uri has it.
func (c *call) listSizes(entries []sizedEntry, from, most int, bySize bool, uri func(name string) string) string {
	var text strings.Builder
	var files, dirs int
	var total int64
	left := 0
	var last sizedEntry // that is listed
	for i, e := range entries {
		dir := e.Type == fs.ModeDir
		if dir {
			dirs++
		} else {
			files++
			total += e.size
		}
		if i < from {
			continue
		}
		if text.Len() >= most {
			left++
			continue
		}
		last = e
		name := e.Name
		if !utf8.ValidString(name) {
			name = uri(name)
		}
		if dir {
			fmt.Fprintf(&text, "[DIR] %s \n", pad(name))
		} else {
			fmt.Fprintf(&text, "[FILE] %s %10s\n", pad(name), sizeText(e.size))
		}
	}
	if left > 0 {
		cursor := last.Name
		if bySize {
			cursor = fmt.Sprintf("%d/%s", last.size, last.Name)
		}
		fmt.Fprintf(&text, "%s not listed, because one answer carries at most %d bytes of them.%s\n",
			plural(int64(left), "more name is", "more names are"), most, c.goOn(cursorAt(cursor)))
	}
	fmt.Fprintf(&text, "\nTotal: %d files, %d directories\nCombined size: %s", files, dirs, sizeText(total))
	return text.String()
}

// pad fills a name up to the column of sizes, by UTF-16 units as the reference server does.
func pad(name string) string {
	const column = 30
	n := len(name)
	if n < 3*column { // else it is longer in any case
		n = len(utf16.Encode([]rune(name)))
	}
	return name + strings.Repeat(" ", max(0, column-n))
}

// sizeText writes a number of bytes in a unit that fits.
func sizeText(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	size, unit := float64(bytes), 0
	units := [...]string{"B", "KB", "MB", "GB", "TB"}
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	return fmt.Sprintf("%.2f %s", size, units[unit])
}

var getFileInfo = tool{
	name:  "get_file_info",
	title: "Get File Info",
	description: "Describe a file or a directory: its size, when it was made, changed and read, what it is, and its permissions. A link is " +
		"described by what it leads to. " + onlyWithin,
	params:      []param{aPath},
	annotations: readOnly,
	run: func(c *call) (answer, error) {
		var info fs.FileInfo
		path, err := c.at(opStat, c.args.text("path"), func(path string) (err error) {
			info, err = c.fs.Stat(path)
			return err
		})
		if err != nil {
			return answer{}, err
		}
		created := "unknown"
		if at, err := c.fs.Birth(path); err == nil && !at.IsZero() {
			created = dateText(at)
		}
		var text strings.Builder
		fmt.Fprintf(&text, "size: %d\ncreated: %s\nmodified: %s\naccessed: %s\n", info.Size(), created, dateText(info.ModTime()), dateText(accessed(info)))
		fmt.Fprintf(&text, "isDirectory: %v\nisFile: %v\npermissions: %03o", info.IsDir(), info.Mode().IsRegular(), info.Mode().Perm())
		if !c.compat {
			fmt.Fprintf(&text, "\nversion: %s", rootfs.Version(info))
		}
		return answer{text: text.String()}, nil
	},
}

// dateText writes a time as JavaScript does, in local time.
func dateText(t time.Time) string {
	t = t.Local()
	zone := "Coordinated Universal Time"
	if name, offset := t.Zone(); offset != 0 || name != "UTC" {
		zone = name // its long name is not known here
	}
	return t.Format("Mon Jan 02 2006 15:04:05 GMT-0700 (") + zone + ")"
}

var listAllowedDirectories = tool{
	name:  "list_allowed_directories",
	title: "List Allowed Directories",
	description: "List the directories that this server may reach; everything beneath them can be reached too. Use it first, to " +
		"know which paths the other tools take.",
	annotations: readOnly,
	output: `"type":"object","properties":{"content":{"type":"string"},"directories":{"type":"array","items":{"type":"object","properties":{` +
		`"path":{"type":"string"},"name":{"type":"string"},"access":{"description":"What may be done beneath it: to read, to write, to ` +
		`delete","type":"array","items":{"type":"string","enum":["read","write","delete"]}}},"required":["path","access"],"additionalProperties":false}},` +
		`"protection":{"description":"What holds this server to these directories","type":"string"}},` +
		`"required":["content","directories"],"additionalProperties":false}`,
	extraOutput: true,
	run: func(c *call) (answer, error) {
		a := answer{text: "Allowed directories:\n" + strings.Join(c.allowed(), "\n")}
		if !c.compat {
			a.members = c.directories()
		}
		return a, nil
	},
}

// directories are the members of structuredContent that say what may be done where.
func (c *call) directories() []byte {
	b := []byte(`,"directories":[`)
	first := true
	for _, d := range c.set.Dirs() {
		if !mayRead(d) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = wire.AppendQuote(append(b, `{"path":`...), show(d.Path))
		if d.Name != "" {
			b = wire.AppendQuote(append(b, `,"name":`...), d.Name)
		}
		access := []string{"read"}
		if d.Access&roots.Write != 0 {
			access = append(access, "write")
		}
		if d.Access&roots.Delete != 0 {
			access = append(access, "delete")
		}
		b = append(append(append(b, `,"access":`...), quoteAll(access)...), '}')
	}
	b = append(b, ']')
	if c.protection != nil {
		b = wire.AppendQuote(append(b, `,"protection":`...), c.protection())
	}
	return b
}
