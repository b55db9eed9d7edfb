package fsserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/rootfs"
)

// Operations of the kernel's protocol for file systems in user space (linux/fuse.h).
const (
	fuseLookup      = 1
	fuseForget      = 2
	fuseGetattr     = 3
	fuseOpen        = 14
	fuseStatfs      = 17
	fuseInit        = 26
	fuseOpendir     = 27
	fuseInterrupt   = 36
	fusePoll        = 40
	fuseBatchForget = 42
)

// fuseMode is how a file system that is mounted for a test answers.
type fuseMode struct {
	// fails is what every operation ends with that is not answered: a directory is described, and so are a file f and a
	// directory d in it.
	fails unix.Errno
	// lookups says that names in it are answered, too.
	lookups bool
	// silent: what is no description of the directory itself is not answered at all.
	silent bool
}

// fuseEnv has the mode of this process, when it serves such a file system.
const fuseEnv = "ROOTBOUND_FS_FUSE"

// mountFUSE mounts a file system on R/m, until the test ends. Another process serves it, which ends with this one: whoever
// waits for an answer of his own process cannot be ended.
func mountFUSE(mode fuseMode) func(t testing.TB, w string) error {
	return func(t testing.TB, w string) error {
		device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("opening /dev/fuse: %v: %w", err, errors.ErrUnsupported)
		}
		defer device.Close()
		options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device.Fd())
		if err := unix.Mount("test", w+"/R/m", "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return fmt.Errorf("mounting: %v: %w", err, errors.ErrUnsupported)
		}
		server := exec.Command("/proc/self/exe")
		server.Env = append(os.Environ(), fmt.Sprintf("%s=%d %t %t", fuseEnv, mode.fails, mode.lookups, mode.silent))
		server.ExtraFiles = []*os.File{device} // 3
		alive, err := server.StdinPipe()
		if err == nil {
			err = server.Start()
		}
		t.Cleanup(func() {
			unix.Unmount(w+"/R/m", unix.MNT_DETACH|unix.MNT_FORCE)
			alive.Close()
			server.Wait()
		})
		return err
	}
}

// serveFUSE is the process that serves a file system, until its standard input ends.
func serveFUSE(how string) {
	var mode fuseMode
	var fails int
	if _, err := fmt.Sscanf(how, "%d %t %t", &fails, &mode.lookups, &mode.silent); err != nil {
		panic(err)
	}
	mode.fails = unix.Errno(fails)
	go mode.serve(3)
	io.Copy(io.Discard, os.Stdin)
}

// serve answers the kernel until the file system is unmounted.
func (mode fuseMode) serve(fd int) {
	buf := make([]byte, 1<<20)
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR || err == unix.ENOENT {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		request := buf[:n]
		op, node := binary.NativeEndian.Uint32(request[4:]), binary.NativeEndian.Uint64(request[16:])
		body, fails, silent := mode.answer(op, node, strings.TrimRight(string(request[40:]), "\x00"))
		if silent {
			continue
		}
		answer := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		answer = binary.NativeEndian.AppendUint32(answer, uint32(-int32(fails)))
		answer = append(append(answer, request[8:16]...), body...)
		unix.Write(fd, answer)
	}
}

func (mode fuseMode) answer(op uint32, node uint64, name string) (body []byte, fails unix.Errno, silent bool) {
	switch {
	case op == fuseForget || op == fuseBatchForget || op == fuseInterrupt || op == fusePoll: // nobody should ask the last
		return nil, 0, true
	case op == fuseInit:
		body = binary.NativeEndian.AppendUint32(nil, 7)
		body = binary.NativeEndian.AppendUint32(body, 31)
		return append(body, make([]byte, 64-len(body))...), 0, false
	case op == fuseGetattr && (node == 1 || mode.lookups):
		return append(make([]byte, 16), fuseAttributes(node)...), 0, false
	case mode.silent:
		return nil, 0, true
	case op == fuseStatfs:
		return make([]byte, 80), 0, false
	case op == fuseLookup && mode.lookups && (name == "f" || name == "d"):
		node := map[string]uint64{"f": 2, "d": 3}[name]
		return append(append(binary.NativeEndian.AppendUint64(nil, node), make([]byte, 32)...), fuseAttributes(node)...), 0, false
	case op == fuseOpen && mode.lookups:
		return make([]byte, 16), 0, false
	}
	return nil, mode.fails, false
}

// fuseAttributes are those of a node: 2 is a file, and the others are directories.
func fuseAttributes(node uint64) []byte {
	a := make([]byte, 88)
	kind := uint32(unix.S_IFDIR | 0o755)
	if node == 2 {
		kind = unix.S_IFREG | 0o644
		binary.NativeEndian.PutUint64(a[8:], 100) // its size
	}
	binary.NativeEndian.PutUint64(a, node)
	binary.NativeEndian.PutUint32(a[60:], kind)
	binary.NativeEndian.PutUint32(a[64:], 1)
	return a
}

// unreadable is what is tried on a mount that answers with errors.
func unreadable(id, what string, mode fuseMode) attempt {
	return attempt{id: id, what: what, tree: map[string]string{"R/m/": ""}, make: mountFUSE(mode), steps: []step{
		tryList("$W/R", "~ [DIR] m"), tryList("$W/R/m", wantDeny), tryAt("list_directory_with_sizes", "$W/R", "~ ok.txt"), tryAt("list_directory_with_sizes", "$W/R/m", wantDeny),
		tryAt("directory_tree", "$W/R", "~ ok.txt"), tryAt("directory_tree", "$W/R/m", wantDeny), trySearch("$W/R", "**/*", "~ ok.txt"), trySearch("$W/R/m", "**", wantDeny),
		tryAt("search_content", "$W/R", "~ ok.txt", `"pattern":"inside"`), tryAt("search_content", "$W/R/m", wantDeny, `"pattern":"x"`),
		tryRead("$W/R/m/f", wantDeny), tryAt("read_text_file", "$W/R/m/f", wantDeny, `"head":1`), tryAt("read_text_file", "$W/R/m/f", wantDeny, `"tail":1`), tryAt("read_lines", "$W/R/m/f", wantDeny),
		tryAt("read_media_file", "$W/R/m/f", wantDeny), {tool: "read_multiple_files", args: `{"paths":["$W/R/m/f","$W/R/ok.txt"]}`, want: "~ inside"}, tryAt("get_file_info", "$W/R/m", wantEither),
		tryAt("get_file_info", "$W/R/m/f", wantEither), tryWrite("$W/R/m/new", wantDeny), tryWrite("$W/R/m/f", wantDeny), tryAt("append_file", "$W/R/m/f", wantDeny, `"content":"x"`),
		tryEdit("$W/R/m/f", wantDeny), tryMkdir("$W/R/m/x", wantDeny), tryMove("$W/R/m/f", "$W/R/x", wantDeny), tryMove("$W/R/m", "$W/R/x", wantDeny), tryMove("$W/R/ok2", "$W/R/m/x", wantDeny),
		tryAt("delete_path", "$W/R/m/f", wantDeny), tryAt("delete_path", "$W/R/m", wantDeny), {tool: "copy_file", args: `{"source":"$W/R/m","destination":"$W/R/c"}`, want: wantDeny},
		{tool: "copy_file", args: `{"source":"$W/R/ok.txt","destination":"$W/R/m/c"}`, want: wantDeny}, tryList("$W/R", "~ [DIR] m")}, check: textAt("R/ok2", "two")}
}

// A mount that cannot be read does not keep what is beside it from being listed, searched and read, and nothing waits for it.
// Not with os.Root, which lets the runtime ask whether a file can be read now: a file system may answer that, or not, and
// then the whole process waits.
func TestUnreadableMounts(t *testing.T) {
	inEveryVariant(t, slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return v.other || v.osRoot }), func(t *testing.T, _ variant) {
		for i, a := range []attempt{
			unreadable("EIO", "a mount where nothing can be opened", fuseMode{fails: unix.EIO}),
			unreadable("EACCES", "a mount that lets nobody in", fuseMode{fails: unix.EACCES}),
			unreadable("ENOTCONN", "a mount whose server is gone", fuseMode{fails: unix.ENOTCONN}),
			unreadable("read", "a mount where files can be opened and not read", fuseMode{fails: unix.EIO, lookups: true}),
		} {
			t.Run(a.id, func(t *testing.T) {
				for _, fault := range attempted(t, a, eras[i%2], nil) {
					t.Errorf("%s: %s", a.what, fault)
				}
			})
		}
		t.Run("silent", testSilentMount)
		t.Run("walks", testWalksOfASilentMount)
	})
}

// A mount that does not answer, as one over a network that is gone, holds up what reaches it and nothing else. When it is
// taken away, the calls that waited are answered.
func testSilentMount(t *testing.T) {
	c := newTrial(t, map[string]string{"R/m/": ""}, rootfs.Options{})
	if err := mountFUSE(fuseMode{silent: true})(t, c.w); errors.Is(err, errors.ErrUnsupported) {
		t.Logf("left out: silent: %v", err)
		return
	} else if err != nil {
		t.Fatal(err)
	}
	held := []step{tryRead("$W/R/m/f", ""), tryList("$W/R/m", ""), tryAt("directory_tree", "$W/R", ""), tryWrite("$W/R/m/f", "")}
	answers := make(chan string, len(held))
	for _, s := range held {
		r := request(exchange.Legacy, "tools/call", `{"name":"`+s.tool+`","arguments":`+c.path(s.args)+`}`, c.set)
		c.server.Handle(t.Context(), r, func(o exchange.Outcome) { answers <- string(o.Msg.Bytes()) })
	}
	for _, s := range []step{
		tryRead("$W/R/ok.txt", "= inside"), tryList("$W/R", "~ [DIR] m"), tryAt("directory_tree", "$W/R/a", "~ b.txt"), trySearch("$W/S", "**", "~ two.txt"), tryWrite("$W/R/ok2", "~ wrote"),
	} {
		if got := c.call(t, s.tool, s.args); !c.satisfies(got, s.want) {
			t.Errorf("beside it, %s %s: %s", s.tool, s.args, got)
		}
	}
	if n := len(answers); n > 0 {
		t.Errorf("%d calls that reach it are answered: it does not hold up anything", n)
	}
	if err := unix.Unmount(c.w+"/R/m", unix.MNT_DETACH|unix.MNT_FORCE); err != nil {
		t.Fatal(err)
	}
	for range held {
		select {
		case <-answers:
		case <-time.After(mcptest.Patience):
			t.Fatal("a call that reached it is not answered when it is gone")
		}
	}
	c.report(t)
}

// Walks that a silent mount holds up are answered with the rest when their time is over, and keep no other walk waiting; nor do
// those that it holds up for ever. More than that are refused.
func testWalksOfASilentMount(t *testing.T) {
	c := newTrial(t, map[string]string{"R/m/": "", "R/z/f": "inside"}, rootfs.Options{})
	if err := mountFUSE(fuseMode{silent: true})(t, c.w); errors.Is(err, errors.ErrUnsupported) {
		t.Logf("left out: walks: %v", err)
		return
	} else if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.slots.waits = waits{walk: 500 * time.Millisecond, slot: 100 * time.Millisecond, still: 20 * time.Millisecond}
	c.server = exchange.Checked(s, func(err error) { t.Error(err) })
	over := []step{
		tryAt("directory_tree", "$W/R", "~ did not answer within"), tryAt("directory_tree", "$W/R", `~ "name": "b.txt"`), tryAt("directory_tree", "$W/R", `~ it was not looked at`),
		trySearch("$W/R", "**/f", "~ /R/z/f"), trySearch("$W/R", "**/f", "~ a file system in it did not answer"),
		tryAt("search_content", "$W/R", "~ ok.txt", `"pattern":"inside"`), tryAt("search_content", "$W/R", "~ not complete: a file system in it did not answer", `"pattern":"inside"`),
		tryAt("list_directory_with_sizes", "$W/R", "~ [FILE] ok.txt                                6 B"), tryAt("list_directory_with_sizes", "$W/R", "~ Not every size is known", `"sortBy":"size"`),
		tryAt("directory_tree", "$W/R/m", "deny budget"),
	}
	var all sync.WaitGroup
	for _, step := range over {
		all.Go(func() {
			if got := c.call(t, step.tool, step.args); !c.satisfies(got, step.want) {
				t.Errorf("%s %s: %s", step.tool, step.args, got)
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // all of them are held up
	beside := func(step step) {
		if got := c.call(t, step.tool, step.args); !c.satisfies(got, step.want) {
			t.Errorf("beside it, %s %s: %s", step.tool, step.args, got)
		}
	}
	beside(tryAt("directory_tree", "$W/R/a", "~ b.txt"))
	beside(trySearch("$W/S", "**", "~ two.txt"))
	all.Wait()
	beside(tryAt("search_content", "$W/S", "~ two.txt", `"pattern":"second"`))
	for range maxHeldUp + maxWalks {
		all.Go(func() { c.call(t, "directory_tree", `{"path":"$W/R/m"}`) })
	}
	all.Wait()
	beside(tryAt("directory_tree", "$W/R/a", "deny held_up"))
	beside(tryRead("$W/R/ok.txt", "= inside"))

	s.slots.most = 4
	answers := make(chan exchange.Outcome, s.slots.most)
	for range s.slots.most {
		s.Handle(t.Context(), request(exchange.Legacy, "tools/call", c.path(`{"name":"read_text_file","arguments":{"path":"$W/R/m/f"}}`), c.set), func(o exchange.Outcome) { answers <- o })
	}
	beside(tryRead("$W/R/ok.txt", "deny held_up"))
	if got := ask(t, s, request(exchange.Modern, "resources/read", c.path(`{"uri":"file://$W/R/ok.txt"}`), c.set)); !strings.Contains(got, `"reason":"held_up"`) {
		t.Errorf("a resource is answered with %s", got)
	}
	if err := unix.Unmount(c.w+"/R/m", unix.MNT_DETACH|unix.MNT_FORCE); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(mcptest.Patience); len(s.slots.walks) > 0 || s.slots.heldUp.Load() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d walks have a slot, and %d count as held up, when it is gone", len(s.slots.walks), s.slots.heldUp.Load())
		}
	}
	for range s.slots.most {
		<-answers
	}
	beside(tryAt("directory_tree", "$W/R", "~ b.txt"))
	c.report(t)
}
