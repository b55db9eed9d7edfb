package fsserver

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/rootfs"
)

// race is what one client does again and again while directories and files are exchanged with links that lead outside. What
// it is answered does not matter, but for what every answer is held to.
type race struct {
	name  string
	steps []step
}

var races = []race{
	{name: "read", steps: []step{
		tryRead("$W/R/d/f", ""), tryRead("$W/R/file", ""), tryRead("d/f", ""), tryRead("$W/R/a/../d/f", ""), tryAt("read_text_file", "$W/R/l/f", "", `"head":1`),
		tryAt("read_text_file", "$W/R/file", "", `"tail":1`), tryAt("read_lines", "$W/R/d/f", ""), tryAt("read_media_file", "$W/R/d/f", ""),
		tryAt("read_file", "$W/R/d/f", ""), {tool: "read_multiple_files", args: `{"paths":["$W/R/d/f","$W/R/file","$W/R/l/f"]}`}}},
	{name: "describe", steps: []step{tryAt("get_file_info", "$W/R/d/f", ""), tryAt("get_file_info", "$W/R/file", ""), tryAt("get_file_info", "$W/R/d", "")}},
	{name: "list", steps: []step{tryList("$W/R/d", ""), tryList("$W/R/l/", ""), tryAt("list_directory_with_sizes", "$W/R/d", ""), tryAt("list_directory_with_sizes", "$W/R", "")}},
	{name: "walk", steps: []step{
		tryAt("directory_tree", "$W/R", ""), tryAt("directory_tree", "$W/R/d", ""), trySearch("$W/R", "**/*", ""), trySearch("$W/R/d", "**/*", ""),
		tryAt("search_content", "$W/R", "", `"pattern":"nobody|inside"`), tryAt("search_content", "$W/R/d", "", `"pattern":"nobody|inside"`)}},
	{name: "write", steps: []step{tryWrite("$W/R/d/f", ""), tryWrite("$W/R/file", ""), tryWrite("$W/R/d/new", ""), tryAt("append_file", "$W/R/d/f", "", `"content":"more"`),
		tryAt("append_file", "$W/R/file", "", `"content":"more"`)}},
	{name: "edit", steps: []step{tryWrite("$W/R/d/f", ""), tryEdit("$W/R/d/f", ""), tryAt("edit_file", "$W/R/d/f", "", `"edits":[{"oldText":"written","newText":"edited"}]`),
		tryAt("edit_file", "$W/R/file", "", `"edits":[{"oldText":"\n","newText":"\n"}]`), tryAt("edit_file", "$W/R/file", "", `"dryRun":true`, `"edits":[{"oldText":"what","newText":"that"}]`)}},
	{name: "mkdir", steps: []step{tryMkdir("$W/R/d/x/y", ""), tryMkdir("$W/R/l/z", ""), tryMkdir("$W/R/d/f/no", "")}},
	{name: "move", steps: []step{
		tryMove("$W/R/d/f", "$W/R/got", ""), tryRead("$W/R/got", ""), tryMove("$W/R/got", "$W/R/d/f", ""), tryMove("$W/R/file", "$W/R/d/file", ""), tryMove("$W/R/d/file", "$W/R/file", ""),
		tryMove("$W/R/ok2", "$W/R/d/hiddenplace", ""), tryMove("$W/R/d/hiddenplace", "$W/R/ok2", "")}},
	{name: "copy", steps: []step{
		{tool: "copy_file", args: `{"source":"$W/R/d/f","destination":"$W/R/copy","overwrite":true}`}, tryRead("$W/R/copy", ""),
		{tool: "copy_file", args: `{"source":"$W/R/ok.txt","destination":"$W/R/d/copy","overwrite":true}`},
		{tool: "copy_file", args: `{"source":"$W/R/d","destination":"$W/R/copied"}`}, tryAt("directory_tree", "$W/R/copied", ""), tryRead("$W/R/copied/f", ""), tryAt("delete_path", "$W/R/copied", "")}},
	{name: "delete", steps: []step{tryWrite("$W/R/d/f", ""), tryAt("delete_path", "$W/R/d/f", ""), tryAt("delete_path", "$W/R/d/canaryname.txt", "")}},
}

// TestRaces races against an attacker who may rename what is inside, as any other program may, and against a client that
// does it with the server's own tool. Nothing outside is shown, and nothing changes there.
// https://github.com/garrytan/gstack/issues/1420, https://github.com/rust-mcp-stack/rust-mcp-filesystem/pull/94
func TestRaces(t *testing.T) {
	inEveryVariant(t, variants, func(t *testing.T, _ variant) {
		each := 2 * time.Second / time.Duration(len(races)+1)
		if *long {
			each = 30 * time.Second
		}
		for _, r := range races {
			t.Run(r.name, func(t *testing.T) { runRace(t, r, each, exchangeNames) })
		}
		t.Run("a client against itself", func(t *testing.T) { runRace(t, races[0], each, moveNames) })
	})
}

// runRace races with an attacker for so long, and until both sides have won once.
func runRace(t *testing.T, r race, each time.Duration, attack func(t *testing.T, c *trial, stop *atomic.Bool)) {
	c := newTrial(t, map[string]string{"R/d/f": "inside\n", "R/l": "-> ../outside", "R/file": "inside\n", "R/filelink": "-> ../outside/f"}, rootfs.Options{})
	before := c.outside(t)
	var stop atomic.Bool
	var attacking sync.WaitGroup
	attacking.Go(func() { attack(t, c, &stop) })
	succeeded, failed := 0, 0
	missing := func() bool { return succeeded == 0 || failed == 0 }
	for begin := time.Now(); time.Since(begin) < each || missing() && time.Since(begin) < mcptest.Patience; {
		for i, s := range r.steps {
			switch got := c.callAs(t, eras[i%2], s.tool, s.args); {
			case got.code == codeArguments || got.code == codeUnknownTool:
				c.fault("%s %s: %s", s.tool, s.args, got)
			case got.isError:
				failed++
			default:
				succeeded++
			}
		}
		if len(c.faults) > 0 {
			break
		}
	}
	stop.Store(true)
	attacking.Wait()
	if after := c.outside(t); after != before {
		c.fault("what lies outside has changed, from\n%s\nto\n%s", before, after)
	}
	if missing() && len(c.faults) == 0 {
		c.fault("no race: %d calls succeeded, and %d failed", succeeded, failed)
	}
	c.report(t)
}

// exchangeNames exchanges a directory and a file with links.
func exchangeNames(t *testing.T, c *trial, stop *atomic.Bool) {
	runtime.LockOSThread()
	for !stop.Load() {
		for one, other := range map[string]string{"/R/d": "/R/l", "/R/file": "/R/filelink"} {
			err := unix.Renameat2(unix.AT_FDCWD, c.w+one, unix.AT_FDCWD, c.w+other, unix.RENAME_EXCHANGE)
			if err != nil && err != unix.ENOENT { // a tool has moved it
				t.Errorf("exchanging names: %v", err)
				return
			}
		}
	}
}

// moveNames does the same with the server's tool, one move after the other.
func moveNames(t *testing.T, c *trial, stop *atomic.Bool) {
	for !stop.Load() {
		for _, s := range []step{
			tryMove("$W/R/d", "$W/R/t", ""), tryMove("$W/R/l", "$W/R/d", ""), tryMove("$W/R/d", "$W/R/l", ""), tryMove("$W/R/t", "$W/R/d", ""),
			tryMove("$W/R/file", "$W/R/t", ""), tryMove("$W/R/filelink", "$W/R/file", ""), tryMove("$W/R/file", "$W/R/filelink", ""), tryMove("$W/R/t", "$W/R/file", ""),
		} {
			if got := c.call(t, s.tool, s.args); got.isError {
				t.Errorf("%s: %s", s.args, got)
				return
			}
		}
	}
}

// A server that follows the links of a path before it opens it loses.
func TestTheRaceCatchesANaiveServer(t *testing.T) {
	c := newTrial(t, map[string]string{"R/d/f": "inside\n", "R/l": "-> ../outside", "R/file": "inside\n", "R/filelink": "-> ../outside/f"}, rootfs.Options{})
	c.server, c.foreign = newNaive(c, true), true
	var stop atomic.Bool
	var attacking sync.WaitGroup
	attacking.Go(func() { exchangeNames(t, c, &stop) })
	for begin := time.Now(); len(c.faults) == 0 && time.Since(begin) < mcptest.Patience; {
		c.call(t, "read_text_file", `{"path":"$W/R/d/f"}`)
		c.call(t, "read_text_file", `{"path":"$W/R/file"}`)
	}
	stop.Store(true)
	attacking.Wait()
	if len(c.faults) == 0 || !strings.Contains(c.faults[0], "it shows") {
		t.Errorf("it was not caught: %q", c.faults)
	}
}

// Two clients that move to one name: one of them does, and nothing is lost.
// https://github.com/modelcontextprotocol/servers/issues/4628
func TestMovesNeverReplace(t *testing.T) {
	c := newTrial(t, nil, rootfs.Options{})
	for range 200 {
		grow(t, c.w, map[string]string{"R/one": "one", "R/two": "two"})
		var moved [2]reply
		var both sync.WaitGroup
		for i, from := range []string{"$W/R/one", "$W/R/two"} {
			s := tryMove(from, "$W/R/there", "")
			both.Go(func() { moved[i] = c.callAs(t, exchange.Modern, s.tool, s.args) })
		}
		both.Wait()
		if moved[0].isError == moved[1].isError || moved[0].isError && moved[0].code != "exists" || moved[1].isError && moved[1].code != "exists" {
			t.Fatalf("one is answered %s, the other %s", moved[0], moved[1])
		}
		there, _ := os.ReadFile(c.w + "/R/there")
		one, _ := os.ReadFile(c.w + "/R/one")
		two, _ := os.ReadFile(c.w + "/R/two")
		if got := string(there) + string(one) + string(two); got != "onetwo" && got != "twoone" {
			t.Fatalf("what is left is %q", got)
		}
		for _, name := range []string{"one", "two", "there"} {
			os.Remove(c.w + "/R/" + name)
		}
	}
	c.report(t)
}
