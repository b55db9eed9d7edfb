//go:build unix

package fsserver

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// writer is a client that may write in two roots, R and S, and read a third, O.
type writer struct {
	t      *testing.T
	w      string // the directory that holds the roots
	server *Server
	set    roots.Set
}

func newWriter(t *testing.T, files map[string]string, o Options) *writer {
	all := map[string]string{"R/": "", "S/": "", "O/": "", "outside/f": canary}
	for name, text := range files {
		all[name] = text
	}
	w := tree(t, all)
	o.Name, o.Title, o.Version = "files", "Files", "1.2"
	server := New(o)
	t.Cleanup(server.Close)
	return &writer{t, w, server, roots.NewSet(
		resolve(t, filepath.Join(w, "R"), roots.ReadWrite), resolve(t, filepath.Join(w, "S"), roots.ReadWrite), resolve(t, filepath.Join(w, "O"), roots.ReadOnly))}
}

// use calls a tool. In its arguments and answer, $W is the directory that holds the roots; an error begins with "!".
func (w *writer) use(tool, args string) string {
	w.t.Helper()
	text, isError := use(w.t, w.server, exchange.Legacy, w.set, tool, strings.ReplaceAll(args, "$W", w.w))
	if isError {
		text = "!" + text
	}
	return strings.ReplaceAll(text, w.w, "$W")
}

// edit edits a file.
func (w *writer) edit(path string, edits ...textEdit) string {
	w.t.Helper()
	type member struct {
		OldText    string `json:"oldText"`
		NewText    string `json:"newText"`
		ReplaceAll bool   `json:"replaceAll"`
	}
	list := []member{}
	for _, e := range edits {
		list = append(list, member{string(e.old), string(e.new), e.all})
	}
	args, err := json.Marshal(map[string]any{"path": path, "edits": list})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.use("edit_file", string(args))
}

func replacing(old, new string) textEdit { return textEdit{old: []byte(old), new: []byte(new)} }

// tree returns what is beneath a directory: the text of files, "-> " and where it leads for links, "/" for empty directories.
func (w *writer) tree(dir string) map[string]string {
	w.t.Helper()
	got := map[string]string{}
	top := filepath.Join(w.w, dir)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(top, path)
		switch {
		case d.IsDir():
			if list, err := os.ReadDir(path); err != nil || len(list) == 0 {
				got[name] = "/"
				return err
			}
		case d.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			got[name] = "-> " + strings.ReplaceAll(link, w.w, "$W")
			return err
		case d.Type() == 0:
			text, err := os.ReadFile(path)
			got[name] = string(text)
			return err
		default:
			got[name] = d.Type().String()
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// holds checks what is beneath a directory.
func (w *writer) holds(dir string, want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.tree(dir)); diff != "" {
		w.t.Errorf("in %s (-want +got):\n%s", dir, diff)
	}
}

// What the reference server says, where it does what it should; and what it does not, as docs/differences.md has it.
func TestWriteDropIn(t *testing.T) {
	const write, mkdir, move, edit = "write_file", "create_directory", "move_file", "edit_file"
	head := func(path string) string {
		return "```diff\nIndex: " + path + "\n" + strings.Repeat("=", 67) + "\n--- " + path + "\toriginal\n+++ " + path + "\tmodified\n"
	}
	outside := func(path string) string {
		return "!Access denied - path outside allowed directories: " + path + " not in $W/R, $W/S, $W/O"
	}
	link := func(path string) string {
		return "!Access denied - symlink target outside allowed directories, or missing: " + path + " not in $W/R, $W/S, $W/O"
	}
	isRoot := func(path string) string {
		return "!Access denied - an allowed directory, or one that holds it, stays where it is: " + path
	}
	readOnly := func(path string) string {
		return "!Access denied - the allowed directory $W/O is read-only: " + path
	}
	for _, tt := range []struct{ tool, args, want string }{
		{write, `{"path":"$W/R/new","content":"x"}`, "Successfully wrote to $W/R/new"},
		{write, `{"path":"$W/R/new","content":"y"}`, "Successfully wrote to $W/R/new"},
		{write, `{"path":"$W/R/sub/./in","content":""}`, "Successfully wrote to $W/R/sub/./in"},
		{write, `{"path":"$W/R/gone/x","content":"x"}`, "!ENOENT: no such file or directory, open '$W/R/gone/x'"},
		{write, `{"path":"$W/R/sub","content":"x"}`, "!EISDIR: illegal operation on a directory, open '$W/R/sub'"},
		{write, `{"path":"$W/R","content":"x"}`, "!EISDIR: illegal operation on a directory, open '$W/R'"}, // E124
		{write, `{"path":"$W/R/a.txt/x","content":"x"}`, "!ENOTDIR: not a directory, realpath '$W/R/a.txt/x'"},
		{write, `{"path":"$W/outside/x","content":"x"}`, outside("$W/outside/x")},
		{write, `{"path":"$W/O/x","content":"x"}`, readOnly("$W/O/x")},
		{write, `{"path":"$W/O/kept","content":"x"}`, readOnly("$W/O/kept")},
		{write, `{"path":"in","content":"linked\n"}`, "Successfully wrote to in"},
		{write, `{"path":"a\u0000b","content":"x"}`, outside("$W/R/a\x00b")},
		{write, `{"path":"file://$W/R/by%20uri","content":"x"}`, "Successfully wrote to file://$W/R/by%20uri"},
		{write, `{"path":"new"}`, "!MCP error -32602: Input validation error: Invalid arguments for tool write_file: Invalid input: expected string, received undefined at content"},

		// Escapes: E63 to E67.
		{write, `{"path":"$W/R/dangling out","content":"x"}`, link("$W/R/dangling out")},
		{write, `{"path":"$W/R/dangling","content":"x"}`, link("$W/R/dangling")},
		{write, `{"path":"$W/R/out","content":"x"}`, link("$W/R/out")},
		{write, `{"path":"$W/R/outdir/x","content":"x"}`, link("$W/R/outdir/x")},
		{mkdir, `{"path":"$W/R/dangling out/x"}`, link("$W/R/dangling out/x")},
		{mkdir, `{"path":"$W/R/dangling out"}`, link("$W/R/dangling out")},
		{mkdir, `{"path":"$W/R/outdir/x"}`, link("$W/R/outdir/x")},

		// https://github.com/modelcontextprotocol/servers/issues/4629: with all that is above.
		{mkdir, `{"path":"$W/R/p/q/r"}`, "Successfully created directory $W/R/p/q/r"},
		{mkdir, `{"path":"p/q"}`, "Successfully created directory p/q"},
		{mkdir, `{"path":"$W/R"}`, "Successfully created directory $W/R"},
		{mkdir, `{"path":"$W/R/a.txt"}`, "!EEXIST: file already exists, mkdir '$W/R/a.txt'"},
		{mkdir, `{"path":"$W/R/a.txt/x"}`, "!ENOTDIR: not a directory, realpath '$W/R/a.txt/x'"},
		{mkdir, `{"path":"$W/outside/x"}`, outside("$W/outside/x")},
		{mkdir, `{"path":"$W/O/x/y"}`, readOnly("$W/O/x/y")},

		// https://github.com/modelcontextprotocol/servers/issues/4628: nothing is overwritten.
		{move, `{"source":"$W/R/b.txt","destination":"$W/R/a.txt"}`, "!Destination already exists: $W/R/a.txt"},
		{move, `{"source":"$W/R/b.txt","destination":"$W/R/b.txt"}`, "!Destination already exists: $W/R/b.txt"},
		{move, `{"source":"$W/R/full","destination":"$W/R/empty"}`, "!Destination already exists: $W/R/empty"},
		{move, `{"source":"$W/R/b.txt","destination":"$W/R/empty/"}`, "!Destination already exists: $W/R/empty"},
		{move, `{"source":"$W/R/b.txt","destination":"$W/R/gone/b"}`, "!ENOENT: no such file or directory, rename '$W/R/b.txt' -> '$W/R/gone/b'"},
		{move, `{"source":"$W/R/gone","destination":"$W/R/b2"}`, "!ENOENT: no such file or directory, rename '$W/R/gone' -> '$W/R/b2'"},
		{move, `{"source":"$W/R/full","destination":"$W/R/full/y"}`, "!EINVAL: invalid argument, rename '$W/R/full' -> '$W/R/full/y'"},
		{move, `{"source":"$W/R/b.txt","destination":"$W/R/a.txt/x"}`, "!ENOTDIR: not a directory, realpath '$W/R/a.txt/x'"},
		{move, `{"source":"$W/R","destination":"$W/S/r"}`, isRoot("$W/R")},
		{move, `{"source":"$W/R/b.txt","destination":"$W/R2"}`, outside("$W/R2")},
		{move, `{"source":"$W/outside/f","destination":"$W/R/got"}`, outside("$W/outside/f")},
		{move, `{"source":"$W/R/b.txt","destination":"$W/R/outdir/x"}`, link("$W/R/outdir/x")}, // E78
		{move, `{"source":"$W/R/b.txt","destination":"$W/O/x"}`, readOnly("$W/O/x")},
		{move, `{"source":"$W/O/kept","destination":"$W/R/x"}`, readOnly("$W/O/kept")},
		{move, `{"source":"b.txt","destination":"b3.txt"}`, "Successfully moved b.txt to b3.txt"},
		{move, `{"source":"$W/R/b3.txt","destination":"$W/S/b.txt"}`, "Successfully moved $W/R/b3.txt to $W/S/b.txt"}, // E121

		{edit, `{"path":"$W/R/a.txt","edits":[{"oldText":"l2","newText":"L2"}],"dryRun":true}`, head("$W/R/a.txt") + "@@ -1,3 +1,3 @@\n l1\n-l2\n+L2\n l3\n```\n\n"},
		{edit, `{"path":"$W/R/a.txt","edits":[{"oldText":"l2","newText":"L2"}]}`, head("$W/R/a.txt") + "@@ -1,3 +1,3 @@\n l1\n-l2\n+L2\n l3\n```\n\n"},
		{edit, `{"path":"$W/R/a.txt","edits":[]}`, head("$W/R/a.txt") + "```\n\n"},
		{edit, `{"path":"$W/R/gone","edits":[{"oldText":"l2","newText":"L2"}]}`, "!ENOENT: no such file or directory, open '$W/R/gone'"},
		{edit, `{"path":"$W/R/gone","edits":[{"oldText":"l2","newText":"L2"}],"dryRun":true}`, "!ENOENT: no such file or directory, open '$W/R/gone'"},
		{edit, `{"path":"$W/R/sub","edits":[{"oldText":"l2","newText":"L2"}]}`, "!EISDIR: illegal operation on a directory, read"},
		{edit, `{"path":"$W/R/sub","edits":[{"oldText":"l2","newText":"L2"}],"dryRun":true}`, "!EISDIR: illegal operation on a directory, read"},
		{edit, `{"path":"$W/R/a.txt","edits":[{"oldText":"zz\nyy","newText":"L2"}]}`, "!Could not find exact match for edit:\nzz\nyy"},
		{edit, `{"path":"$W/R/out","edits":[{"oldText":"what","newText":"L2"}]}`, link("$W/R/out")},
		{edit, `{"path":"$W/R/out","edits":[{"oldText":"what","newText":"L2"}],"dryRun":true}`, link("$W/R/out")}, // E68
		{edit, `{"path":"$W/O/kept","edits":[{"oldText":"kept","newText":"L2"}]}`, readOnly("$W/O/kept")},
		{edit, `{"path":"$W/O/kept","edits":[{"oldText":"kept","newText":"L2"}],"dryRun":true}`, readOnly("$W/O/kept")},
		{edit, `{"path":"in","edits":[{"oldText":"linked\n","newText":"` + "```" + `"}]}`,
			"`" + strings.Replace(head("$W/R/linked"), "```", "```", 1) + "@@ -1,1 +1,1 @@\n-linked\n+```\n\\ No newline at end of file\n````\n\n"},
		{edit, `{"path":"$W/R/a.txt","edits":[{"oldText":"l1"},3]}`, "!MCP error -32602: Input validation error: Invalid arguments for tool edit_file: " +
			"Invalid input: expected string, received undefined at edits[0].newText\nInvalid input: expected object, received number at edits[1]"},
	} {
		for _, compat := range []bool{false, true} {
			w := newWriter(t, map[string]string{
				"R/a.txt": "l1\nl2\nl3\n", "R/b.txt": "b", "R/sub/in": "s", "R/full/x": "x", "R/empty/": "", "R/linked": "linked\n",
				"R/in": "-> linked", "R/out": "-> $W/outside/f", "R/outdir": "-> ../outside", "R/dangling": "-> gone", "R/dangling out": "-> ../outside/new",
				"R/b3.txt": "b", "O/kept": "kept",
			}, Options{Compat: compat})
			if strings.Contains(tt.args, `"b3.txt"`) {
				os.Remove(filepath.Join(w.w, "R/b3.txt"))
			}
			if diff := cmp.Diff(tt.want, w.use(tt.tool, tt.args)); diff != "" {
				t.Errorf("%s %s, compat %v (-want +got):\n%s", tt.tool, tt.args, compat, diff)
			}
			w.holds("outside", map[string]string{"f": canary})
			w.holds("O", map[string]string{"kept": "kept"})
		}
	}
}

// A relative path that names something is that; one that names nothing is beneath the first root that can take it.
func TestRelativePathsOfWhatIsNotThere(t *testing.T) {
	w := newWriter(t, map[string]string{"S/old": "", "S/dir/x": "", "O/old too": "o"}, Options{})
	for _, name := range []string{"old", "dir/new", "new"} {
		if got := w.use("write_file", `{"path":"`+name+`","content":"text"}`); got != "Successfully wrote to "+name {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := w.use("write_file", `{"path":"old too","content":"text"}`); got != "!Access denied - the allowed directory $W/O is read-only: $W/O/old too" {
		t.Error(got)
	}
	w.holds("R", map[string]string{"new": "text"})
	w.holds("S", map[string]string{"old": "text", "dir/new": "text", "dir/x": ""})
}

// The reference server writes a file of "\r\n" anew with "\n" when one word of it is edited.
func TestEditKeepsCarriageReturns(t *testing.T) {
	w := newWriter(t, map[string]string{"R/f": "\ufeffone\r\ntwo\nthree\r\n\tfour"}, Options{})
	want := "```diff\nIndex: $W/R/f\n" + strings.Repeat("=", 67) + "\n--- $W/R/f\toriginal\n+++ $W/R/f\tmodified\n" +
		"@@ -1,4 +1,5 @@\n one\n two\n-three\n+3\n+3.5\n \tfour\n\\ No newline at end of file\n```\n\n"
	if diff := cmp.Diff(want, w.edit("f", replacing("three", "3\r\n3.5"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.holds("R", map[string]string{"f": "\ufeffone\r\ntwo\n3\r\n3.5\r\n\tfour"})
}

// https://github.com/github/copilot-cli/issues/3732
// https://github.com/anthropics/claude-code/issues/85842
func TestEditKeepsBytesThatAreNoText(t *testing.T) {
	w := newWriter(t, map[string]string{"R/latin1": "caf\xe9\r\nb\r\n", "R/binary": "\x00\xff\xfe word \x80\x00"}, Options{})
	w.edit("latin1", replacing("b", "th\u00e9"))
	w.edit("binary", replacing("word", "text"))
	w.holds("R", map[string]string{"latin1": "caf\xe9\r\nth\u00e9\r\n", "binary": "\x00\xff\xfe text \x80\x00"})
}

// https://github.com/CherryHQ/cherry-studio/issues/20695
// https://github.com/google-gemini/gemini-cli/issues/29078
// https://github.com/earendil-works/pi/issues/2327
func TestParallelEditsLoseNothing(t *testing.T) {
	const n = 20
	var text, want strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %02d.\n", i)
		fmt.Fprintf(&want, "edit %02d.\n", i)
	}
	w := newWriter(t, map[string]string{"R/f": text.String(), "R/link": "-> f"}, Options{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			path := []string{"f", w.w + "/R/./f", "link"}[i%3]
			if got := w.edit(path, replacing(fmt.Sprintf("line %02d.", i), fmt.Sprintf("edit %02d.", i))); got[0] == '!' {
				t.Errorf("edit %d: %s", i, got)
			}
		})
	}
	for i := range n {
		wg.Go(func() {
			if got := w.use("append_file", `{"path":"log","content":"x"}`); got != "Successfully appended to log" {
				t.Errorf("append %d: %s", i, got)
			}
		})
	}
	wg.Wait()
	w.holds("R", map[string]string{"f": want.String(), "link": "-> f", "log": strings.Repeat("x", n)})
}

// https://github.com/modelcontextprotocol/servers/issues/1591: all edits or none.
func TestFailedEditChangesNothing(t *testing.T) {
	w := newWriter(t, map[string]string{"R/f": "a\nb\nb\n"}, Options{})
	before, err := os.Stat(filepath.Join(w.w, "R/f"))
	if err != nil {
		t.Fatal(err)
	}
	for _, edits := range [][]textEdit{
		{replacing("a", "x"), replacing("gone", "y")},
		{replacing("a", "x"), replacing("b", "y")},
		{replacing("", "x")},
		{replacing("a", "a")},
	} {
		w.edit("f", edits...)
	}
	w.use("edit_file", `{"path":"f","edits":[{"oldText":"a","newText":"x"}],"dryRun":true}`)
	after, err := os.Stat(filepath.Join(w.w, "R/f"))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file was written again: %v", err)
	}
	w.holds("R", map[string]string{"f": "a\nb\nb\n"})
}

// https://github.com/docker/docker-agent/issues/3929
func TestReplaceAllIsAsked(t *testing.T) {
	all := textEdit{old: []byte("b"), new: []byte("c"), all: true}
	for _, compat := range []bool{false, true} {
		w := newWriter(t, map[string]string{"R/f": "a\nb\nb\n"}, Options{Compat: compat})
		want := "a\nc\nc\n"
		got := w.edit("f", all)
		if compat {
			want = "a\nb\nb\n"
			if got != "!Found 2 matches for edit, at lines 2, 3, so it is not clear which is meant:\nb\n\nNothing was changed. Give more of the text around the one that is meant." {
				t.Errorf("%q", got)
			}
		}
		w.holds("R", map[string]string{"f": want})
	}
}

// https://github.com/modelcontextprotocol/servers/pull/4115; E134: what gives rights to who runs it does not stay.
func TestWriteKeepsModeBits(t *testing.T) {
	w := newWriter(t, map[string]string{"R/run": "old", "R/edit": "old"}, Options{})
	for _, name := range []string{"run", "edit"} {
		if err := os.Chmod(filepath.Join(w.w, "R", name), 0o751|fs.ModeSetuid|fs.ModeSetgid); err != nil {
			t.Fatal(err)
		}
	}
	w.use("write_file", `{"path":"run","content":"new"}`)
	w.edit("edit", replacing("old", "new"))
	for _, name := range []string{"run", "edit"} {
		if info, err := os.Stat(filepath.Join(w.w, "R", name)); err != nil || info.Mode() != 0o751 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	w.holds("R", map[string]string{"run": "new", "edit": "new"})
}

// https://github.com/modelcontextprotocol/servers/issues/4512; E87, E88: the other names of a file keep the old text.
func TestOtherNamesOfAFileAreLeft(t *testing.T) {
	w := newWriter(t, nil, Options{})
	for _, name := range []string{"h1", "h2"} {
		if err := os.Link(filepath.Join(w.w, "outside/f"), filepath.Join(w.w, "R", name)); err != nil {
			t.Fatal(err)
		}
	}
	w.use("write_file", `{"path":"h1","content":"mine"}`)
	w.edit("h2", replacing("nobody", "somebody"))
	w.holds("outside", map[string]string{"f": canary})
	w.holds("R", map[string]string{"h1": "mine", "h2": strings.Replace(canary, "nobody", "somebody", 1)})
}

// The reference server moves what a link leads to, and leaves the link. E76 too.
func TestMoveMovesTheLinkItself(t *testing.T) {
	w := newWriter(t, map[string]string{"R/f": "text", "R/link": "-> f", "R/out": "-> $W/outside/f"}, Options{})
	w.use("move_file", `{"source":"link","destination":"moved"}`)
	w.use("move_file", `{"source":"out","destination":"got"}`)
	w.holds("R", map[string]string{"f": "text", "moved": "-> f", "got": "-> $W/outside/f"})
	w.holds("outside", map[string]string{"f": canary})
	if got := w.use("read_text_file", `{"path":"got"}`); !strings.HasPrefix(got, "!Access denied - symlink target outside") {
		t.Error(got)
	}
}

// https://github.com/modelcontextprotocol/servers/pull/4630: of many that move to one place one wins, and nothing is lost.
func TestMoveRace(t *testing.T) {
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("R/f%d", i)] = fmt.Sprint(i)
	}
	w := newWriter(t, files, Options{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { w.use("move_file", fmt.Sprintf(`{"source":"f%d","destination":"to"}`, i)) })
	}
	wg.Wait()
	got := map[string]bool{}
	for _, text := range w.tree("R") {
		got[text] = true
	}
	if len(got) != 20 || w.tree("R")["to"] == "" {
		t.Errorf("%v", w.tree("R"))
	}
}

// A version that is not the file's any more protects what has come in the meantime.
func TestVersionProtectsWhatChanged(t *testing.T) {
	w := newWriter(t, map[string]string{"R/f": "one"}, Options{})
	info, err := os.Stat(filepath.Join(w.w, "R/f"))
	if err != nil {
		t.Fatal(err)
	}
	old := rootfs.Version(info)
	text := w.use("write_file", `{"path":"f","content":"two","version":"`+old+`"}`)
	next, found := strings.CutPrefix(text, "Successfully wrote to f\nversion: ")
	if !found {
		t.Fatal(text)
	}
	stale := "!The file has changed since version " + old + ", so nothing was written: $W/R/f. Read it again and see what is to be done now."
	for _, call := range [][2]string{
		{"write_file", `{"path":"f","content":"three","version":"` + old + `"}`},
		{"append_file", `{"path":"f","content":"three","version":"` + old + `"}`},
		{"edit_file", `{"path":"f","edits":[{"oldText":"two","newText":"three"}],"version":"` + old + `"}`},
		{"edit_file", `{"path":"f","edits":[{"oldText":"two","newText":"three"}],"dryRun":true,"version":"` + old + `"}`},
	} {
		if got := w.use(call[0], call[1]); got != stale {
			t.Errorf("%s %s: %s", call[0], call[1], got)
		}
	}
	got := w.use("edit_file", `{"path":"f","edits":[{"oldText":"two","newText":"three"}],"version":"`+next+`"}`)
	if !strings.Contains(got, "\n```\n\nversion: ") {
		t.Error(got)
	}
	w.holds("R", map[string]string{"f": "three"})
}

// E102, E103: a FIFO is not opened for writing, and stays.
func TestSpecialFilesAreNotWritten(t *testing.T) {
	w := newWriter(t, map[string]string{"R/link": "-> fifo"}, Options{})
	if err := syscall.Mkfifo(filepath.Join(w.w, "R/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	const special = "!Access denied - not a regular file or directory: $W/R/fifo"
	for _, call := range [][3]string{
		{"write_file", `{"path":"fifo","content":"x"}`, special},
		{"write_file", `{"path":"link","content":"x"}`, special},
		{"append_file", `{"path":"fifo","content":"x"}`, special},
		{"edit_file", `{"path":"fifo","edits":[{"oldText":"x","newText":"y"}]}`, special},
		{"edit_file", `{"path":"fifo","edits":[{"oldText":"x","newText":"y"}],"dryRun":true}`, special},
		{"copy_file", `{"source":"fifo","destination":"new"}`, special},
		{"copy_file", `{"source":"$W/R","destination":"$W/S/R"}`, "Successfully copied $W/R to $W/S/R: 0 files, 1 directory; left out: 2 (symbolic links, special files, names that are not served)"},
	} {
		if got := w.use(call[0], call[1]); got != call[2] {
			t.Errorf("%s %s:\n got %s\nwant %s", call[0], call[1], got, call[2])
		}
	}
	w.holds("R", map[string]string{"fifo": fs.ModeNamedPipe.String(), "link": "-> fifo"})
}

// E49 to E52: paths that are too long or too deep.
func TestPathsTooLongToWrite(t *testing.T) {
	w := newWriter(t, nil, Options{})
	for _, path := range []string{strings.Repeat("n", 300), strings.Repeat("d/", 1500), strings.Repeat("d/", 300), strings.Repeat("a/", 500_000)} {
		for _, tool := range []string{"write_file", "create_directory"} {
			if got := w.use(tool, `{"path":"`+path+`","content":""}`); got[0] != '!' {
				t.Errorf("%s of %d bytes: %.100s", tool, len(path), got)
			}
		}
	}
	w.holds("R", map[string]string{".": "/"})
}

// Strict links: what has a name elsewhere is neither read nor written.
func TestStrictLinksAndWrites(t *testing.T) {
	w := newWriter(t, nil, Options{Files: rootfs.Options{StrictLinks: true}})
	if err := os.Link(filepath.Join(w.w, "outside/f"), filepath.Join(w.w, "R/h")); err != nil {
		t.Fatal(err)
	}
	for tool, args := range map[string]string{
		"write_file": `{"path":"h","content":"x"}`, "append_file": `{"path":"h","content":"x"}`, "edit_file": `{"path":"h","edits":[{"oldText":"what","newText":"x"}]}`,
	} {
		if got := w.use(tool, args); got != "!Access denied - a file with several names (hard links) is not served: $W/R/h" {
			t.Errorf("%s: %s", tool, got)
		}
	}
	w.holds("outside", map[string]string{"f": canary})
}

// What is too large to copy or edit is refused, and nothing of it is left.
func TestLargeFilesAreNotChanged(t *testing.T) {
	w := newWriter(t, map[string]string{"R/huge": ""}, Options{})
	if err := os.Truncate(filepath.Join(w.w, "R/huge"), 100<<30); err != nil {
		t.Fatal(err)
	}
	const copied = "!EFBIG: file too large: one call copies at most 1073741824 bytes"
	for _, call := range [][3]string{
		{"edit_file", `{"path":"huge","edits":[{"oldText":"x","newText":"y"}]}`,
			"!EFBIG: file too large, edit '$W/R/huge': it has more than 16777216 bytes, and edit_file takes no larger one. Change it with a program of its own, as sed, or split it."},
		{"append_file", `{"path":"huge","content":"x"}`, copied},
		{"copy_file", `{"source":"huge","destination":"new"}`, copied},
		{"copy_file", `{"source":"$W/R","destination":"$W/S/R"}`, "!The directory was copied in part, 0 files of it, to $W/S/R: it holds more than 1073741824 bytes, and one call copies no more"},
	} {
		if got := w.use(call[0], call[1]); got != call[2] {
			t.Errorf("%s %s:\n got %s\nwant %s", call[0], call[1], got, call[2])
		}
	}
	if list := w.use("list_directory", `{"path":"$W/R"}`); list != "[FILE] huge" {
		t.Error(list)
	}
}

func TestCopy(t *testing.T) {
	w := newWriter(t, map[string]string{
		"R/f": "text", "R/dir/a": "a", "R/dir/deep/b": "b", "R/dir/none/": "", "R/dir/link": "-> a", "R/out": "-> $W/outside/f", "S/there": "s", "O/kept": "o",
	}, Options{})
	for _, tt := range []struct{ args, want string }{
		{`{"source":"f","destination":"$W/S/f"}`, "Successfully copied f to $W/S/f"},
		{`{"source":"f","destination":"$W/S/there"}`, "!Destination already exists: $W/S/there. With overwrite, a file is replaced."},
		{`{"source":"f","destination":"$W/S/there","overwrite":true}`, "Successfully copied f to $W/S/there"},
		{`{"source":"f","destination":"f"}`, "!Destination already exists: $W/R/f. With overwrite, a file is replaced."},
		{`{"source":"f","destination":"dir"}`, "!Destination already exists: $W/R/dir. With overwrite, a file is replaced."},
		{`{"source":"$W/O/kept","destination":"$W/S/kept"}`, "Successfully copied $W/O/kept to $W/S/kept"},
		{`{"source":"f","destination":"$W/O/f"}`, "!Access denied - the allowed directory $W/O is read-only: $W/O/f"},
		{`{"source":"out","destination":"got"}`, "!Access denied - symlink target outside allowed directories, or missing: $W/R/out not in $W/R, $W/S, $W/O"},
		{`{"source":"gone","destination":"got"}`, "!ENOENT: no such file or directory, copyfile '$W/R/gone'"},
		{`{"source":"f","destination":"$W/S/gone/f"}`, "!ENOENT: no such file or directory, open '$W/S/gone/f'"},
		{`{"source":"dir","destination":"$W/S/dir"}`, "Successfully copied dir to $W/S/dir: 2 files, 3 directories; left out: 1 (symbolic links, special files, names that are not served)"},
		{`{"source":"dir","destination":"$W/S/dir","overwrite":true}`, "!Destination already exists: $W/S/dir"},
		{`{"source":"dir","destination":"$W/R/dir/deep/x"}`, "!EINVAL: invalid argument, cp '$W/R/dir' -> '$W/R/dir/deep/x': a directory cannot be copied into itself"},
		{`{"source":"dir","destination":"$W/S/gone/dir"}`, "!ENOENT: no such file or directory, mkdir '$W/S/gone/dir'"},
		{`{"source":"dir","destination":"$W/O/dir"}`, "!Access denied - the allowed directory $W/O is read-only: $W/O/dir"},
	} {
		if diff := cmp.Diff(tt.want, w.use("copy_file", tt.args)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, diff)
		}
	}
	w.holds("R", map[string]string{"f": "text", "dir/a": "a", "dir/deep/b": "b", "dir/none": "/", "dir/link": "-> a", "out": "-> $W/outside/f"})
	w.holds("S", map[string]string{"f": "text", "there": "text", "kept": "o", "dir/a": "a", "dir/deep/b": "b", "dir/none": "/"})
	w.holds("O", map[string]string{"kept": "o"})
}

// Where nothing may be written there are no tools for it, and one that is called all the same says why.
func TestReadOnlyServer(t *testing.T) {
	for _, compat := range []bool{false, true} {
		w := newWriter(t, map[string]string{"R/f": "text"}, Options{ReadOnly: true, Compat: compat})
		list := ask(t, w.server, request(exchange.Legacy, "tools/list", "", roots.Set{}))
		for _, tool := range tools {
			if strings.Contains(list, `"name":"`+tool.name+`"`) != (!tool.writes && !(tool.extra && compat)) {
				t.Errorf("compat %v: %s is listed, or is not", compat, tool.name)
			}
			if strings.Contains(tool.annotations, `"readOnlyHint":true`) == tool.writes {
				t.Errorf("%s has the annotations %s", tool.name, tool.annotations)
			}
		}
		if got := w.use("write_file", `{"path":"f","content":""}`); got != "!Access denied - nothing may be changed: every allowed directory is read-only, so there is no write_file." {
			t.Error(got)
		}
		w.holds("R", map[string]string{"f": "text"})
	}
}

// A script that is copied can be run; a file at the destination keeps what it had.
func TestCopyKeepsModeBits(t *testing.T) {
	w := newWriter(t, map[string]string{"R/dir/run": "#!/bin/sh\n", "S/there": ""}, Options{})
	if err := os.Chmod(filepath.Join(w.w, "R/dir/run"), 0o700|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	w.use("copy_file", `{"source":"dir/run","destination":"$W/S/run"}`)
	w.use("copy_file", `{"source":"dir","destination":"$W/S/dir"}`)
	w.use("copy_file", `{"source":"dir/run","destination":"$W/S/there","overwrite":true}`)
	for name, want := range map[string]fs.FileMode{"run": 0o700, "dir/run": 0o700, "there": 0o644} {
		if info, err := os.Stat(filepath.Join(w.w, "S", name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// A directory that is denied, or not served at all, is left out of a copy of what it lies in.
func TestCopyLeavesOutDirectories(t *testing.T) {
	deny, err := NewDeny([]string{"keys"}, false)
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, map[string]string{"R/dir/a": "a", "R/dir/keys/b": "b", "R/dir/hole/c": "c", "R/dir/z/d": "d"}, Options{Deny: deny})
	w.set = roots.NewSet(append(w.set.Dirs(), resolve(t, filepath.Join(w.w, "R/dir/hole"), 0))...)
	want := "Successfully copied $W/R/dir to $W/S/dir: 2 files, 2 directories; left out: 2 (symbolic links, special files, names that are not served)"
	if got := w.use("copy_file", `{"source":"$W/R/dir","destination":"$W/S/dir"}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	w.holds("S", map[string]string{"dir/a": "a", "dir/z/d": "d"})
}

// No error tells where a link outside leads, also where it leads inside.
func TestErrorsDoNotTellOfLinksOutside(t *testing.T) {
	w := newWriter(t, map[string]string{"R/f": "f", "outside/back": "-> $W/R", "R/out": "-> $W/outside/back/f"}, Options{})
	for _, call := range [][2]string{
		{"move_file", `{"source":"$W/R/gone","destination":"$W/outside/back/x"}`},
		{"copy_file", `{"source":"$W/outside/back/f","destination":"$W/R/x"}`},
		{"edit_file", `{"path":"$W/R/out","edits":[{"oldText":"f","newText":"x"}]}`},
	} {
		answer := w.use(call[0], call[1])
		shown, _, _ := strings.Cut(answer, " not in ") // behind it are the roots
		if answer[0] != '!' || strings.Contains(shown, "$W/R/x'") || strings.Contains(shown, "$W/R/f") {
			t.Errorf("%s %s: %s", call[0], call[1], answer)
		}
	}
}

// What is denied is not written, moved or deleted either, nor is a directory that holds it; a copy leaves it out.
func TestDeniedNamesAreNotChanged(t *testing.T) {
	deny := func(name string) bool { return name == ".env" || strings.HasSuffix(name, "/.env") }
	w := newWriter(t, map[string]string{"R/.env": "key", "R/dir/.env": "key", "R/dir/a": "a"}, Options{Files: rootfs.Options{Deny: deny}})
	for _, call := range [][3]string{
		{"write_file", `{"path":".env","content":"x"}`, "$W/R/.env"},
		{"write_file", `{"path":"$W/S/.env","content":"x"}`, "$W/S/.env"},
		{"append_file", `{"path":".env","content":"x"}`, "$W/R/.env"},
		{"edit_file", `{"path":".env","edits":[{"oldText":"key","newText":"x"}],"dryRun":true}`, "$W/R/.env"},
		{"create_directory", `{"path":"$W/S/.env/x"}`, "$W/S/.env/x"},
		{"move_file", `{"source":".env","destination":"env"}`, "$W/R/.env, $W/R/env"},
		{"move_file", `{"source":"dir","destination":"dir2"}`, "$W/R/dir, $W/R/dir2"},
		{"move_file", `{"source":"dir/a","destination":"$W/S/.env"}`, "$W/R/dir/a, $W/S/.env"},
		{"copy_file", `{"source":".env","destination":"env"}`, "$W/R/.env"},
		{"delete_path", `{"path":".env"}`, "$W/R/.env"},
		{"delete_path", `{"path":"dir"}`, "$W/R/dir"},
	} {
		what := "this name is not served: "
		switch call[0] {
		case "delete_path":
			what = "this name, or one beneath it, is not served: "
		case "move_file":
			what = "one of these names, or one beneath them, is not served: "
		}
		if got, want := w.use(call[0], call[1]), "!Access denied - "+what+call[2]; got != want {
			t.Errorf("%s %s:\n got %s\nwant %s", call[0], call[1], got, want)
		}
	}
	if got := w.use("copy_file", `{"source":"dir","destination":"$W/S/copy"}`); !strings.HasSuffix(got, ": 1 file, 1 directory; left out: 1 (symbolic links, special files, names that are not served)") {
		t.Error(got)
	}
	w.holds("R", map[string]string{".env": "key", "dir/.env": "key", "dir/a": "a"})
	w.holds("S", map[string]string{"copy/a": "a"})
}

// What steers the server is read and not changed, also where it is not there yet.
func TestOwnFilesAreNotChanged(t *testing.T) {
	w := newWriter(t, map[string]string{"R/own.toml": "x", "R/d/f": "f"}, Options{OwnNames: []string{"own.toml"}})
	refused := func(path string) string {
		return "!Access denied - this decides what the server may do, or holds what does, and no tool changes it: " + path +
			". A person can, with a program of their own."
	}
	for _, tt := range []struct{ tool, args, path string }{
		{"write_file", `{"path":"$W/R/own.toml","content":""}`, "$W/R/own.toml"},
		{"append_file", `{"path":"own.toml","content":""}`, "$W/R/own.toml"},
		{"edit_file", `{"path":"$W/R/own.toml","edits":[{"oldText":"x","newText":"y"}]}`, "$W/R/own.toml"},
		{"move_file", `{"source":"$W/R/own.toml","destination":"$W/R/x"}`, "$W/R/own.toml"},
		{"move_file", `{"source":"$W/R/d/f","destination":"$W/S/own.toml"}`, "$W/S/own.toml"},
		{"copy_file", `{"source":"$W/R/d","destination":"$W/S/own.toml"}`, "$W/S/own.toml"},
		{"delete_path", `{"path":"$W/R/own.toml"}`, "$W/R/own.toml"},
		{"create_directory", `{"path":"$W/S/own.toml/x"}`, "$W/S/own.toml/x"},
	} {
		if got := w.use(tt.tool, tt.args); got != refused(tt.path) {
			t.Errorf("%s %s: %s", tt.tool, tt.args, got)
		}
	}
	if got := w.use("read_text_file", `{"path":"$W/R/own.toml"}`); got != "x" {
		t.Errorf("reading: %s", got)
	}
	if got := w.use("write_file", `{"path":"$W/R/d/own.toml","content":""}`); got[0] == '!' {
		t.Errorf("not at the top: %s", got)
	}
}

// All files of a call count for how much it copies, by what they hold and not by what they say.
func TestFilesOfACopyCountTogether(t *testing.T) {
	w := tree(t, map[string]string{"f": "12345"})
	c := &call{}
	for copied, want := range map[int64]int{maxCopied - 5: 5, maxCopied - 4: 0} {
		f, err := os.Open(w + "/f")
		if err != nil {
			t.Fatal(err)
		}
		c.copied.Store(copied)
		var got strings.Builder
		if err := c.copyBounded(&got, f); (err == nil) != (want == 5) || got.Len() != want {
			t.Errorf("behind %d bytes: %q, %v", copied, got.String(), err)
		}
		f.Close()
	}
}
