package fsserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/rootfs"
)

// attempt is one attempt to get at what lies outside, to change it, or to stop the server. Each is made on a new tree and a
// new server. Ids are those of the battery's origin, and have gaps: attempts of other systems are not here.
type attempt struct {
	id, what string
	tree     map[string]string                  // put into the tree before, as grow takes it
	make     func(t testing.TB, w string) error // and what a text cannot say; errors.ErrUnsupported leaves the attempt out
	files    rootfs.Options                     // of the server
	steps    []step                             // in order
	check    func(w string) error               // what must hold in the end
	shows    bool                               // what lies outside was put inside by who may, and may be shown
	once     bool                               // it takes long, and is made in one variant
	bound    bool                               // it needs a mount of the same file system to be noticed, which os.Root does not do
	waits    bool                               // a server that does as it is told would wait for ever
}

// step is a call, or something that happens meanwhile.
type step struct {
	tool, args string
	want       string
	happens    func(t testing.TB, w string) error
}

// Wants of a step, beside "deny CODE|CODE", "deny !TEXT" (not in the text of the error), "= TEXT" (the whole text), "~ TEXT" (in
// the text) and "! TEXT" (in the text of an error).
const (
	wantDeny   = "deny"   // an error, whichever
	wantEither = "either" // an error or not: what counts is what the trial and the attempt check
	wantAbsent = "deny not_found"
)

// tryAt makes a step of a tool that takes a path.
func tryAt(tool, path, want string, more ...string) step {
	return step{tool: tool, args: `{"path":` + quoteJSON(path) + strings.Join(append([]string{""}, more...), ",") + `}`, want: want}
}
func tryRead(path, want string) step  { return tryAt("read_text_file", path, want) }
func tryList(path, want string) step  { return tryAt("list_directory", path, want) }
func tryMkdir(path, want string) step { return tryAt("create_directory", path, want) }
func tryWrite(path, want string) step {
	return tryAt("write_file", path, want, `"content":"written by a client\n"`)
}
func tryEdit(path, want string) step {
	return tryAt("edit_file", path, want, `"edits":[{"oldText":"what nobody","newText":"all"}]`)
}
func tryMove(from, to, want string) step {
	return step{tool: "move_file", args: `{"source":` + quoteJSON(from) + `,"destination":` + quoteJSON(to) + `}`, want: want}
}
func meanwhile(f func(t testing.TB, w string) error) step { return step{happens: f} }
func trySearch(path, glob, want string) step {
	return tryAt("search_files", path, want, `"pattern":`+quoteJSON(glob))
}

// nothingAt says that nothing has this name beneath the directory that holds all.
func nothingAt(names ...string) func(w string) error {
	return func(w string) error {
		for _, name := range names {
			if _, err := os.Lstat(filepath.Join(w, name)); !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("there is a %q: %v", name, err)
			}
		}
		return nil
	}
}

// textAt says that a file has this text.
func textAt(name, text string) func(w string) error {
	return func(w string) error {
		switch got, err := os.ReadFile(filepath.Join(w, name)); {
		case err != nil:
			return err
		case string(got) != text:
			return fmt.Errorf("%q has %.100q, want %.100q", name, got, text)
		}
		return nil
	}
}

// ofTheLong is n in the long run, and a tenth of it else.
func ofTheLong(n int) int {
	if *long {
		return n
	}
	return n / 10
}

func makeFIFO(t testing.TB, w string) error { return unix.Mkfifo(w+"/R/fifo", 0o666) }

// stillFIFO says that the FIFO is one.
func stillFIFO(w string) error {
	info, err := os.Lstat(w + "/R/fifo")
	if err == nil && info.Mode()&os.ModeNamedPipe == 0 {
		err = fmt.Errorf("it is %v now", info.Mode())
	}
	return err
}

// makeSocket makes a socket that is listened to until the test ends.
func makeSocket(t testing.TB, w string) error {
	t.Chdir(w + "/R") // the path of a socket is short
	l, err := net.Listen("unix", "sock")
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return err
}

// makeZero makes a /dev/zero.
func makeZero(t testing.TB, w string) error {
	if err := unix.Mknod(w+"/R/zero", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		return fmt.Errorf("making a device: %v: %w", err, errors.ErrUnsupported)
	}
	return nil
}

// makeHole makes a file of this many bytes that takes no room.
func makeHole(size int64) func(t testing.TB, w string) error {
	return func(t testing.TB, w string) error {
		f, err := os.Create(w + "/R/huge")
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Truncate(size)
	}
}

// mounting mounts one thing on another, until the test ends.
func mounting(from, to, kind string, flags uintptr) func(t testing.TB, w string) error {
	return func(t testing.TB, w string) error {
		from, to := strings.ReplaceAll(from, "$W", w), strings.ReplaceAll(to, "$W", w)
		if err := unix.Mount(from, to, kind, flags, ""); err != nil {
			return fmt.Errorf("mounting: %v: %w", err, errors.ErrUnsupported)
		}
		t.Cleanup(func() { unix.Unmount(to, unix.MNT_DETACH) })
		return nil
	}
}

var (
	bindDir  = mounting("$W/outside", "$W/R/m", "", unix.MS_BIND)
	bindFile = mounting("$W/outside/f", "$W/R/m", "", unix.MS_BIND)
	bindProc = mounting("/proc", "$W/R/proc", "", unix.MS_BIND)
)

const hugeText = 100 << 30

var battery = []attempt{
	// By the text of a path.
	{id: "E01", what: "dotdot", steps: []step{tryRead("$W/R/../outside/f", "deny outside_roots")}},
	{id: "E02", what: "dotdot, deep", steps: []step{tryRead("$W/R/a/../../outside/f", "deny outside_roots")}},
	{id: "E03", what: "dotdot, relative", steps: []step{tryRead("../outside/f", "deny outside_roots")}},
	{id: "E04", what: "dotdot above /", steps: []step{tryRead("$W/R/"+strings.Repeat("../", 20)+"etc/passwd", "deny outside_roots")}},
	{id: "E05", what: "double slashes", steps: []step{tryRead("$W/R//..//outside//f", "deny outside_roots")}},
	{id: "E06", what: "dot segments", steps: []step{tryRead("$W/R/./.././outside/./f", "deny outside_roots")}},
	{id: "E07", what: "backslashes", steps: []step{tryRead(`$W/R\..\outside\f`, wantDeny), tryRead(`$W/R/..\outside\f`, wantAbsent), tryRead(`..\outside\f`, wantAbsent)}},
	{id: "E09", what: "absolute", steps: []step{tryRead("$W/outside/f", "deny outside_roots")}},
	{id: "E10", what: "/etc/passwd", steps: []step{tryRead("/etc/passwd", "deny outside_roots")}},
	{id: "E11", what: "list /", steps: []step{tryList("/", "deny outside_roots")}},
	{id: "E12", what: "a sibling with the root's name in its own", tree: map[string]string{"Revil/f": canary}, steps: []step{
		tryRead("$W/Revil/f", "deny outside_roots"), tryWrite("$W/Revil/f", wantDeny), tryMove("$W/Revil/f", "$W/R/got", wantDeny)}},
	{id: "E13", what: "the root's name and a blank, listed", tree: map[string]string{"R /hiddenname": canary}, steps: []step{tryList("$W/R ", wantDeny)}},
	{id: "E14", what: "the root's name and a blank, read", tree: map[string]string{"R ": canary}, steps: []step{tryRead("$W/R ", wantDeny)}},
	{id: "E15", what: "the root's name and a quote, written", steps: []step{tryWrite("$W/R'", wantDeny)}},
	{id: "E16", what: "the root's name and a double quote, made", steps: []step{tryMkdir(`$W/R"`, wantDeny)}},
	{id: "E17", what: "the root's name and a blank, moved in", tree: map[string]string{"R ": canary}, steps: []step{
		tryMove("$W/R ", "$W/R/stolen", wantDeny), tryRead("$W/R/stolen", wantDeny)}},
	{id: "E18", what: "the root's name and what is trimmed elsewhere, written", steps: []step{
		tryWrite("$W/R\n", wantDeny), tryWrite("$W/R\u00a0", wantDeny), tryWrite("$W/R\ufeff", wantDeny), tryWrite("\ufeff$W/R.", wantDeny), tryWrite(" $W/outside/g", wantEither)}},
	{id: "E19", what: "data moved out", steps: []step{tryMove("$W/R/ok.txt", "$W/R'", wantDeny)}, check: textAt("R/ok.txt", "inside")},
	{id: "E20", what: "the root in small letters", tree: map[string]string{"r/f": canary}, steps: []step{tryRead("$W/r/f", "deny outside_roots")}},
	{id: "E21", what: "an empty path", steps: []step{tryList("", wantEither)}},
	{id: "E22", what: "a dot", steps: []step{tryList(".", wantEither), tryList("./", wantEither)}},
	{id: "E23", what: "a name that is in the working directory", steps: []step{tryRead("canaryname.txt", wantAbsent), tryWrite("canaryname.txt", wantEither)}},
	{id: "E24", what: "tilde", steps: []step{tryRead("~/f", wantDeny)}},
	{id: "E25", what: "tilde in the middle", steps: []step{tryRead("$W/R/~/f", wantAbsent), tryRead("~root/f", wantAbsent)}},
	{id: "E27", what: "a NUL", steps: []step{
		tryRead("$W/R/ok.txt\x00/../../outside/f", wantDeny), tryRead("$W/outside/f\x00R", wantDeny), tryWrite("$W/R/new\x00x", wantDeny), tryMkdir("$W/R/new\x00x", wantDeny)},
		check: nothingAt("R/new")},
	{id: "E28", what: "percent signs", steps: []step{tryRead("$W/R/%2e%2e/outside/f", wantAbsent)}},
	{id: "E29", what: "percent signs, twice", steps: []step{tryRead("$W/R/..%252foutside%252ff", wantAbsent)}},
	{id: "E30", what: "a URI", steps: []step{tryRead("file://$W/outside/f", "deny outside_roots"), tryRead("file://$W/R/%2e%2e/outside/f", wantDeny), tryRead("file://$W/R/..%2foutside/f", wantDeny)}},
	{id: "E31", what: "a URI with a host", steps: []step{tryRead("file://localhost$W/outside/f", wantDeny), tryRead("file://localhost/$W/outside/f", wantDeny)}},
	{id: "E32", what: "UTF-8 that is longer than it must be", steps: []step{
		{tool: "read_text_file", args: "{\"path\":\"$W/R/\xc0\xae\xc0\xae/outside/f\"}", want: wantDeny}}},
	{id: "E33", what: "a surrogate alone", steps: []step{
		{tool: "read_text_file", args: `{"path":"$W/R/\ud800/../../outside/f"}`, want: wantDeny}}},
	{id: "E34", what: "wide dots and other slashes", steps: []step{tryRead("$W/R/．．/outside/f", wantAbsent), tryRead("$W/R/..∕outside∕f", wantAbsent)}},
	{id: "E35", what: "a name in other code points for a link", tree: map[string]string{"R/cafe\u0301": "-> ../outside"}, steps: []step{
		tryRead("$W/R/caf\u00e9/f", wantDeny), tryList("$W/R/caf\u00e9", wantDeny), tryWrite("$W/R/caf\u00e9/new", wantDeny)}},
	{id: "E38", what: "a file in capital letters", steps: []step{tryRead("$W/R/OK.TXT", wantAbsent)}},
	{id: "E39", what: "a dot or a blank at the end", steps: []step{tryRead("$W/R/ok.txt.", wantAbsent), tryRead("$W/R/.. ", wantAbsent), tryRead("$W/R/...", wantAbsent)}},
	{id: "E40", what: "a stream", steps: []step{tryRead("$W/R/ok.txt::$DATA", wantAbsent), tryWrite("$W/R/ok.txt:evil", wantEither)}, check: textAt("R/ok.txt", "inside")},
	{id: "E41", what: "a share", steps: []step{tryRead(`\\server\share\f`, wantDeny), tryRead("//server/share/f", "deny outside_roots")}},
	{id: "E42", what: "a device path", steps: []step{tryRead(`\\?\C:\x`, wantDeny), tryRead(`\\.\pipe\x`, wantDeny), tryRead(`\??\C:\x`, wantDeny)}},
	{id: "E43", what: "a drive", steps: []step{tryRead(`C:..\outside\f`, wantDeny), tryRead("C:/Windows/win.ini", "deny invalid_path")}},
	{id: "E44", what: "names of devices", steps: []step{tryRead("$W/R/NUL", wantAbsent), tryRead("$W/R/CON", wantAbsent), tryRead("$W/R/COM1.txt", wantAbsent)}},
	{id: "E49", what: "a path of 5,000 bytes", steps: []step{tryRead("$W/R/"+strings.Repeat("a", 5000), wantDeny), tryWrite("$W/R/"+strings.Repeat("a", 5000), wantDeny)}},
	{id: "E50", what: "a path of 1 MB", waits: true, steps: []step{tryRead("$W/R/"+strings.Repeat("a/", 500_000), wantDeny), tryMkdir("$W/R/"+strings.Repeat("a/", 500_000), wantDeny)},
		check: nothingAt("R/a/a")},
	{id: "E51", what: "a name of 300 bytes", steps: []step{tryWrite("$W/R/"+strings.Repeat("n", 300), wantDeny), tryMkdir("$W/R/"+strings.Repeat("n", 300), wantDeny)}},
	{id: "E52", what: "1,500 levels", waits: true, steps: []step{tryMkdir("$W/R/"+strings.Repeat("d/", 1500), wantEither), tryMkdir("$W/R/"+strings.Repeat("d/", 2500), wantDeny)}},

	// By links.
	{id: "E53", what: "a relative link to a file", tree: map[string]string{"R/l": "-> ../outside/f"}, steps: []step{tryRead("$W/R/l", "deny outside_roots"), tryRead("l", wantDeny)}},
	{id: "E54", what: "an absolute link to a file", tree: map[string]string{"R/l": "-> $W/outside/f"}, steps: []step{tryRead("$W/R/l", "deny outside_roots"),
		tryAt("read_text_file", "$W/R/l", wantDeny, `"head":1`), tryAt("read_text_file", "$W/R/l", wantDeny, `"tail":1`)}},
	{id: "E55", what: "a link to a directory", tree: map[string]string{"R/ld": "-> ../outside"}, steps: []step{
		tryRead("$W/R/ld/f", "deny outside_roots"), tryRead("$W/R/a/../ld/./f", wantDeny), tryRead("ld/f", wantDeny)}},
	{id: "E56", what: "links in, in, out", tree: map[string]string{"R/l1": "-> a/l2", "R/a/l2": "-> ../../outside/f"}, steps: []step{tryRead("$W/R/l1", "deny outside_roots")}},
	{id: "E57", what: "links in a loop", tree: map[string]string{"R/x": "-> y", "R/y": "-> x"}, steps: []step{
		tryRead("$W/R/x", "deny loop"), tryWrite("$W/R/x", wantDeny), tryList("$W/R/x", wantDeny), tryMkdir("$W/R/x/y", wantDeny)}},
	{id: "E58", what: "a link to /", tree: map[string]string{"R/l": "-> /"}, steps: []step{tryRead("$W/R/l/etc/passwd", "deny outside_roots"), tryRead("$W/R/l$W/outside/f", wantDeny)}},
	{id: "E59", what: "a link to a directory and a slash", tree: map[string]string{"R/ld": "-> ../outside"}, steps: []step{
		tryList("$W/R/ld/", "deny outside_roots"), tryList("$W/R/ld/.", wantDeny), tryList("$W/R/ld", wantDeny)}},
	{id: "E61", what: "an absolute link inside", tree: map[string]string{"R/l": "-> $W/R/ok.txt"}, steps: []step{tryRead("$W/R/l", "= inside")}},
	{id: "E62", what: "a link into the other root", tree: map[string]string{"R/l": "-> ../S"}, steps: []step{tryRead("$W/R/l/two.txt", "= second root")}},
	{id: "E63", what: "a link to nowhere outside, written", tree: map[string]string{"R/l": "-> ../outside/new"}, steps: []step{tryWrite("$W/R/l", wantDeny), tryEdit("$W/R/l", wantDeny)}},
	{id: "E64", what: "a link to nowhere outside, made beneath", tree: map[string]string{"R/l": "-> ../outside/newdir"}, steps: []step{tryMkdir("$W/R/l/x", wantDeny)}},
	{id: "E65", what: "an absolute link to nowhere outside, made", tree: map[string]string{"R/l": "-> $W/outside/newdir"}, steps: []step{tryMkdir("$W/R/l", wantDeny)}},
	{id: "E66", what: "a link to a file, written", tree: map[string]string{"R/l": "-> ../outside/f"}, steps: []step{tryWrite("$W/R/l", wantDeny)}},
	{id: "E67", what: "beneath a link to a directory, written", tree: map[string]string{"R/ld": "-> ../outside"}, steps: []step{
		tryWrite("$W/R/ld/new", wantDeny), tryWrite("$W/R/ld/f", wantDeny), tryMkdir("$W/R/ld/new/new", wantDeny)}},
	{id: "E68", what: "a link to a file, edited", tree: map[string]string{"R/l": "-> ../outside/f"}, steps: []step{tryEdit("$W/R/l", wantDeny),
		tryAt("edit_file", "$W/R/l", wantDeny, `"dryRun":true`, `"edits":[{"oldText":"x","newText":"y"}]`)}},
	{id: "E70", what: "a link to a file, described", tree: map[string]string{"R/l": "-> ../outside/f"}, steps: []step{tryAt("get_file_info", "$W/R/l", wantEither)}},
	{id: "E71", what: "a link to a file, listed with sizes", tree: map[string]string{"R/d/l": "-> ../../outside/f"}, steps: []step{
		tryAt("list_directory_with_sizes", "$W/R/d", wantEither), tryAt("list_directory_with_sizes", "$W/R/d", wantEither, `"sortBy":"size"`)}},
	{id: "E72", what: "a link to a directory, in a tree", tree: map[string]string{"R/ld": "-> ../outside"}, steps: []step{
		tryAt("directory_tree", "$W/R", "~ ld"), tryAt("directory_tree", "$W/R/ld", wantDeny)}},
	{id: "E74", what: "a link to a directory, searched", tree: map[string]string{"R/ld": "-> ../outside"}, steps: []step{
		trySearch("$W/R", "**/*", "~ ok.txt"), trySearch("$W/R", "**/hidden*", wantEither), trySearch("$W/R", "ld/**", wantEither), trySearch("$W/R/ld", "**/*", wantDeny), trySearch("$W/R", "../outside/*", wantEither)}},
	{id: "E75", what: "30 directories with links to all", waits: true, make: func(t testing.TB, w string) error {
		for i := range 30 {
			files := map[string]string{}
			for j := range 30 {
				files[fmt.Sprintf("R/d%d/l%d", i, j)] = fmt.Sprintf("-> ../d%d", j)
			}
			grow(t, w, files)
		}
		return nil
	}, steps: []step{trySearch("$W/R", "**/*.txt", "~ ok.txt"), tryAt("directory_tree", "$W/R", "~ l29")}},
	{id: "E76", what: "a link out, moved", tree: map[string]string{"R/l": "-> ../outside/f"}, steps: []step{tryMove("$W/R/l", "$W/R/got", wantEither), tryRead("$W/R/got", wantDeny)}},
	{id: "E78", what: "moved beneath a link", tree: map[string]string{"R/ld": "-> ../outside"}, steps: []step{
		tryMove("$W/R/ok2", "$W/R/ld/x", wantDeny), tryMove("$W/R/ld/f", "$W/R/x", wantDeny), tryMove("$W/R/ok2", "$W/R/ld", wantDeny)}, check: textAt("R/ok2", "two")},
	{id: "E80", what: "many files, some outside", tree: map[string]string{"R/l": "-> ../outside/f"}, steps: []step{
		{tool: "read_multiple_files", args: `{"paths":["$W/R/ok.txt","$W/R/l","$W/outside/f"]}`, want: "~ inside"}}},
	{id: "E82", what: "the root exchanged for a link", steps: []step{tryRead("$W/S/two.txt", "= second root"), meanwhile(func(_ testing.TB, w string) error {
		return errors.Join(os.Rename(w+"/R", w+"/R.old"), os.Symlink("outside", w+"/R"))
	}), tryRead("$W/R/f", wantDeny), tryList("$W/R", wantEither), tryWrite("$W/R/f", wantEither), tryWrite("$W/R/new", wantEither)}},
	{id: "E83", what: "another directory in the root's place", steps: []step{tryRead("$W/S/two.txt", "= second root"), meanwhile(func(_ testing.TB, w string) error {
		return errors.Join(os.Rename(w+"/R", w+"/R.old"), os.Mkdir(w+"/R", 0o755), os.WriteFile(w+"/R/f", []byte(canary), 0o644))
	}), tryRead("$W/R/f", wantDeny), tryList("$W/R", wantEither), tryWrite("$W/R/f", wantEither)}},
	{id: "E85", what: "an error that says where a link leads", tree: map[string]string{"R/l": "-> ../outside/f"}, steps: []step{
		tryRead("$W/R/l", "deny !outside/"), tryWrite("$W/R/l", "deny !outside/"), tryEdit("$W/R/l", "deny !outside/"), tryList("$W/R/l", "deny !outside/")}},

	// What is inside although it lies outside.
	{id: "E86", what: "another name of a file, read", tree: map[string]string{"R/h": "=> $W/outside/f"}, shows: true, steps: []step{tryRead("$W/R/h", "~ what nobody")}},
	{id: "E87", what: "another name of a file, written", tree: map[string]string{"R/h": "=> $W/outside/f"}, steps: []step{tryWrite("$W/R/h", wantEither)}},
	{id: "E88", what: "another name of a file, edited", tree: map[string]string{"R/h": "=> $W/outside/f"}, shows: true, steps: []step{
		tryAt("edit_file", "$W/R/h", wantEither, `"edits":[{"oldText":`+quoteJSON(canary[:20])+`,"newText":"x"}]`), tryEdit("$W/R/h", wantEither)}},
	{id: "E89", what: "a directory that is mounted", tree: map[string]string{"R/m/": ""}, make: bindDir, shows: true, steps: []step{tryRead("$W/R/m/f", "~ what nobody"), tryRead("$W/R/m/../../outside/f", wantDeny)}},
	{id: "E90", what: "a file that is mounted", tree: map[string]string{"R/m": ""}, make: bindFile, shows: true, steps: []step{tryRead("$W/R/m", "~ what nobody")}},
	{id: "E91", what: "a directory that is mounted later", tree: map[string]string{"R/m/": ""}, shows: true, steps: []step{
		tryRead("$W/R/ok.txt", "= inside"), meanwhile(bindDir), tryRead("$W/R/m/f", "~ what nobody"), tryList("$W/R/m/../../outside", wantDeny)}},
	{id: "E86 strict", what: "another name of a file, read, where that is refused", tree: map[string]string{"R/h": "=> $W/outside/f", "R/d/h": "=> $W/outside/f"}, files: rootfs.Options{StrictLinks: true}, steps: []step{
		tryRead("$W/R/h", "deny hard_link"), tryAt("read_text_file", "$W/R/h", "deny hard_link", `"head":1`), tryAt("read_media_file", "$W/R/h", "deny hard_link"),
		tryAt("read_file", "$W/R/h", "deny hard_link"), tryAt("read_lines", "$W/R/h", "deny hard_link"),
		{tool: "read_multiple_files", args: `{"paths":["$W/R/h","$W/R/ok.txt"]}`, want: "~ inside"},
		tryAt("search_content", "$W/R", wantEither, `"pattern":"nobody"`), {tool: "copy_file", args: `{"source":"$W/R/h","destination":"$W/R/c"}`, want: wantDeny}, tryRead("$W/R/c", wantDeny),
		{tool: "copy_file", args: `{"source":"$W/R/d","destination":"$W/R/e"}`, want: wantEither}, tryRead("$W/R/e/h", wantDeny)}},
	{id: "E87 strict", what: "another name of a file, written, where that is refused", tree: map[string]string{"R/h": "=> $W/outside/f"}, files: rootfs.Options{StrictLinks: true}, steps: []step{
		tryWrite("$W/R/h", "deny hard_link"), tryAt("append_file", "$W/R/h", "deny hard_link", `"content":"x"`),
		{tool: "copy_file", args: `{"source":"$W/R/ok.txt","destination":"$W/R/h","overwrite":true}`, want: wantDeny}}},
	{id: "E88 strict", what: "another name of a file, edited, where that is refused", tree: map[string]string{"R/h": "=> $W/outside/f"}, files: rootfs.Options{StrictLinks: true}, steps: []step{
		tryEdit("$W/R/h", "deny hard_link"), tryAt("edit_file", "$W/R/h", "deny hard_link", `"dryRun":true`, `"edits":[{"oldText":"x","newText":"y"}]`)}},
	{id: "E89 no mounts", bound: true, what: "a directory that is mounted, where that is refused", tree: map[string]string{"R/m/": ""}, make: bindDir, files: rootfs.Options{NoMounts: true}, steps: []step{
		tryRead("$W/R/m/f", "deny mount"), tryList("$W/R/m", "deny mount"), tryAt("list_directory_with_sizes", "$W/R/m", "deny mount"), tryAt("directory_tree", "$W/R", "~ m"),
		tryAt("directory_tree", "$W/R/m", "deny mount"), trySearch("$W/R", "**/*", "~ ok.txt"), trySearch("$W/R/m", "**/*", "deny mount"), tryAt("search_content", "$W/R", wantEither, `"pattern":"nobody"`),
		tryWrite("$W/R/m/f", wantDeny), tryWrite("$W/R/m/new", wantDeny), tryMkdir("$W/R/m/x", wantDeny), tryEdit("$W/R/m/f", wantDeny), tryMove("$W/R/ok2", "$W/R/m/x", wantDeny),
		tryMove("$W/R/m/f", "$W/R/x", wantDeny), tryAt("delete_path", "$W/R/m/f", wantDeny), {tool: "copy_file", args: `{"source":"$W/R/m","destination":"$W/R/c"}`, want: wantEither},
		tryAt("directory_tree", "$W/R", "~ m")}},
	{id: "E90 no mounts", bound: true, what: "a file that is mounted, where that is refused", tree: map[string]string{"R/m": ""}, make: bindFile, files: rootfs.Options{NoMounts: true}, steps: []step{
		tryRead("$W/R/m", "deny mount"), tryEdit("$W/R/m", wantDeny), tryWrite("$W/R/m", wantDeny), tryAt("search_content", "$W/R", wantEither, `"pattern":"nobody"`),
		{tool: "copy_file", args: `{"source":"$W/R/m","destination":"$W/R/c"}`, want: wantDeny}}},
	{id: "E91 no mounts", bound: true, what: "a directory that is mounted later, where that is refused", tree: map[string]string{"R/m/": ""}, files: rootfs.Options{NoMounts: true}, steps: []step{
		tryRead("$W/R/ok.txt", "= inside"), tryList("$W/R/m", "= "), meanwhile(bindDir), tryRead("$W/R/m/f", "deny mount"), tryList("$W/R/m", "deny mount")}},
	{id: "E89 another file system", what: "a file system that is mounted, where that is refused", tree: map[string]string{"R/m/": ""}, make: mounting("none", "$W/R/m", "tmpfs", 0), files: rootfs.Options{NoMounts: true}, steps: []step{
		tryList("$W/R/m", "deny mount"), tryWrite("$W/R/m/new", wantDeny), tryMove("$W/R/ok2", "$W/R/m/x", wantDeny)}, check: textAt("R/ok2", "two")},
	{id: "E89 moved", what: "moved to a file system that is mounted", tree: map[string]string{"R/m/": ""}, make: mounting("none", "$W/R/m", "tmpfs", 0), steps: []step{
		tryMove("$W/R/ok2", "$W/R/m/x", "deny cross_device")}, check: textAt("R/ok2", "two")},
	{id: "E89 removed", bound: true, what: "a directory with a mount, removed", tree: map[string]string{"R/d/m/": ""}, make: mounting("$W/outside", "$W/R/d/m", "", unix.MS_BIND), shows: true, steps: []step{
		tryAt("delete_path", "$W/R/d/m", wantEither), tryAt("delete_path", "$W/R/d", wantEither)}},
	{id: "E93", what: "/proc/self/root", tree: map[string]string{"R/proc/": ""}, make: bindProc, steps: []step{
		tryRead("$W/R/proc/self/root$W/outside/f", wantDeny), tryRead("$W/R/proc/self/environ", wantDeny), tryList("$W/R/proc", wantDeny), tryAt("directory_tree", "$W/R", wantEither)}},
	{id: "E94", what: "/proc/self/cwd", tree: map[string]string{"R/proc/": ""}, make: bindProc, steps: []step{tryRead("$W/R/proc/self/cwd/f", wantDeny)}},
	{id: "E95", what: "a link to /proc/self/cwd", tree: map[string]string{"R/l": "-> /proc/self/cwd"}, steps: []step{tryRead("$W/R/l/f", wantDeny), tryWrite("$W/R/l/new", wantDeny)}},
	{id: "E96", what: "a link to /proc/self/environ", tree: map[string]string{"R/l": "-> /proc/self/environ"}, steps: []step{tryRead("$W/R/l", "deny outside_roots")}},
	{id: "E99", what: "/proc and /dev/fd", steps: []step{tryRead("/proc/self/environ", "deny outside_roots"), tryRead("/dev/fd/0", "deny outside_roots")}},

	// What is no file.
	{id: "E100", what: "a FIFO, read", make: makeFIFO, waits: true, steps: []step{tryRead("$W/R/fifo", "deny special_file")}},
	{id: "E101", what: "FIFOs, read, and a file", make: makeFIFO, waits: true, steps: []step{
		tryRead("$W/R/fifo", wantDeny), tryRead("$W/R/fifo", wantDeny), tryRead("$W/R/fifo", wantDeny), tryRead("$W/R/fifo", wantDeny), tryRead("$W/R/ok.txt", "= inside")}},
	{id: "E102", what: "a FIFO, written", make: makeFIFO, waits: true, steps: []step{tryWrite("$W/R/fifo", wantDeny)}, check: stillFIFO},
	{id: "E103", what: "a FIFO, edited", make: makeFIFO, waits: true, steps: []step{tryEdit("$W/R/fifo", wantDeny)}, check: stillFIFO},
	{id: "E104", what: "a socket", make: makeSocket, steps: []step{tryRead("$W/R/sock", "deny special_file"), tryWrite("$W/R/sock", wantDeny)}},
	{id: "E105", what: "a device, read", make: makeZero, waits: true, steps: []step{tryRead("$W/R/zero", "deny special_file")}},
	{id: "E106", what: "a device, read as a picture", make: makeZero, waits: true, steps: []step{tryAt("read_media_file", "$W/R/zero", wantDeny)}},
	{id: "E107", what: "a device, its first line", make: makeZero, waits: true, steps: []step{tryAt("read_text_file", "$W/R/zero", wantDeny, `"head":1`)}},

	// What is large.
	{id: "E109", what: "100 GiB, read", make: makeHole(hugeText), waits: true, steps: []step{tryRead("$W/R/huge", "deny too_large"), tryAt("read_media_file", "$W/R/huge", wantDeny),
		{tool: "read_multiple_files", args: `{"paths":["huge","ok.txt"]}`, want: "~ inside"}}},
	{id: "E110", what: "1.5 GiB, read", make: makeHole(3 << 29), waits: true, steps: []step{tryRead("$W/R/huge", "deny too_large")}},
	{id: "E112", what: "100 GiB, the first line", make: makeHole(hugeText), waits: true, steps: []step{
		tryAt("read_text_file", "$W/R/huge", wantEither, `"head":1`), tryAt("read_text_file", "$W/R/huge", wantEither, `"tail":1`)}},
	{id: "E114", what: "100,000 entries", once: true, waits: true, make: func(t testing.TB, w string) error { return makeMany(w+"/R/many", 100, 1000, false) }, steps: []step{
		tryList("$W/R/many", wantEither), tryAt("list_directory_with_sizes", "$W/R/many", wantEither)}},
	{id: "E115", what: "22,000 directories with 3 files each", once: true, waits: true, make: func(t testing.TB, w string) error { return makeMany(w+"/R/many", ofTheLong(22_000), 3, true) }, steps: []step{
		tryAt("directory_tree", "$W/R", wantEither), trySearch("$W/R", "**/*", wantEither)}},
	{id: "E116", what: "700 levels", waits: true, make: func(t testing.TB, w string) error { return deepen(w+"/R", 700) }, steps: []step{
		tryAt("directory_tree", "$W/R", wantEither), trySearch("$W/R", "**/bottom", wantEither), tryList("$W/R/d", "= [DIR] d")}},
	{id: "E117", what: "a glob that takes long elsewhere", tree: map[string]string{"R/" + strings.Repeat("a", 60) + "/" + strings.Repeat("a", 60): ""},
		make: func(t testing.TB, w string) error {
			return os.MkdirAll(w+"/R/"+strings.Repeat("aaaaaaaa/", 30)+"c", 0o755)
		}, waits: true, steps: []step{
			trySearch("$W/R", "**/**/**/**/**/**/*a*a*a*a*a*a*b", wantEither), trySearch("$W/R", strings.Repeat("*a", 100)+"b", wantEither), trySearch("$W/R", strings.Repeat("**/", 200)+"b", wantEither)}},
	{id: "E118", what: "a brace that opens into a million", waits: true, steps: []step{
		trySearch("$W/R", strings.Repeat("{a,b}", 20), wantEither), trySearch("$W/R", strings.Repeat("{", 5000), "deny invalid_arguments"), trySearch("$W/R", "{"+strings.Repeat("a,", 100_000)+"}", "deny invalid_arguments")}},
	{id: "E121", what: "moved to the other root", steps: []step{tryMove("$W/R/ok2", "$W/S/ok2", wantEither)}, check: func(w string) error {
		moved, stayed := textAt("S/ok2", "two")(w), textAt("R/ok2", "two")(w)
		if (moved == nil) == (stayed == nil) {
			return fmt.Errorf("the file is lost, or there twice: %v, %v", moved, stayed)
		}
		return nil
	}},
	{id: "E122", what: "moved to the other root, in another file system", tree: map[string]string{"S/m/": ""}, make: mounting("none", "$W/S/m", "tmpfs", 0), steps: []step{
		tryMove("$W/R/ok2", "$W/S/m/ok2", "deny cross_device")}, check: textAt("R/ok2", "two")},
	{id: "E124", what: "the root itself is written", steps: []step{
		tryWrite("$W/R", "deny is_a_directory"), tryEdit("$W/R", "deny is_a_directory"), tryAt("append_file", "$W/R", wantDeny, `"content":"x"`), tryMove("$W/R", "$W/S/R", "deny is_root"),
		tryMove("$W/R/ok2", "$W/R", "deny exists"), tryAt("delete_path", "$W/R", "deny is_root"), tryRead("$W/R/ok.txt", "= inside")}},
	{id: "E131", what: "paths that are no text", steps: []step{
		{tool: "read_text_file", args: `{"path":["ok.txt"]}`, want: "deny invalid_arguments"}, {tool: "read_text_file", args: `{"path":{}}`, want: "deny invalid_arguments"},
		{tool: "write_file", args: `{"path":1,"content":"x"}`, want: "deny invalid_arguments"}, {tool: "list_directory", args: `{"path":null}`, want: "deny invalid_arguments"},
		{tool: "read_multiple_files", args: `{"paths":"ok.txt"}`, want: "deny invalid_arguments"}}},
	{id: "E133", what: "lines less than none, and very many", steps: []step{
		tryAt("read_text_file", "$W/R/ok.txt", "= ", `"head":-1`), tryAt("read_text_file", "$W/R/ok.txt", "= inside", `"head":1e12`), tryAt("read_text_file", "$W/R/ok.txt", "= inside", `"tail":1e12`),
		tryAt("read_text_file", "$W/R/ok.txt", "deny invalid_arguments", `"head":1e999`), tryAt("read_lines", "$W/R/ok.txt", "deny invalid_arguments", `"offset":-1`)}},
	{id: "E134", what: "a program that runs as its owner is written", tree: map[string]string{"R/suid": "program"}, make: func(t testing.TB, w string) error {
		return os.Chmod(w+"/R/suid", fs.ModeSetuid|fs.ModeSetgid|0o755)
	}, steps: []step{tryWrite("$W/R/suid", "~ wrote")}, check: func(w string) error {
		if info, err := os.Stat(w + "/R/suid"); err != nil || info.Mode() != 0o755 {
			return fmt.Errorf("it has mode %v, %v", info.Mode(), err)
		}
		return nil
	}},
}

// makeMany makes a directory with n·each names of files in it or, nested, in n directories beneath it.
func makeMany(dir string, n, each int, nested bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	first := filepath.Join(dir, "first")
	if err := os.WriteFile(first, []byte("x"), 0o644); err != nil {
		return err
	}
	for i := range n {
		prefix := fmt.Sprintf("%s/%06d-", dir, i)
		if nested {
			prefix = fmt.Sprintf("%s/%03d/%05d/", dir, i/200, i)
			if err := os.MkdirAll(prefix, 0o755); err != nil {
				return err
			}
		}
		for j := range each {
			if (i*each+j)%50_000 == 49_999 { // a file has only so many names
				first = fmt.Sprintf("%s%03d-first", prefix, j)
				if err := os.WriteFile(first, []byte("x"), 0o644); err != nil {
					return err
				}
			}
			if err := os.Link(first, fmt.Sprintf("%s%03d", prefix, j)); err != nil {
				return err
			}
		}
	}
	return nil
}

// deepen makes a directory in a directory, many times, without a path that is too long.
func deepen(dir string, levels int) error {
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range levels {
		if err != nil {
			return err
		}
		if err = unix.Mkdirat(fd, "d", 0o755); err != nil {
			break
		}
		next, e := unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd, err = next, e
	}
	if err == nil {
		err = unix.Mkdirat(fd, "bottom", 0o755)
		unix.Close(fd)
	}
	return err
}
