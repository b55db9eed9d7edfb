package fsserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fsnotify/fsnotify"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// cancelled calls a tool, whose context a test ends in the middle, waits until it has ended, and wants no answer.
func cancelled(ctx context.Context, t *testing.T, s *Server, set roots.Set, tool, args string) {
	t.Helper()
	r := request(exchange.Legacy, "tools/call", `{"name":"`+tool+`","arguments":`+args+`}`, set)
	if o := s.call(ctx, r, nil); o.Msg != nil {
		t.Errorf("%s: it is answered with %.300s", tool, o.Msg.Bytes())
	}
}

// A file that is being copied is not there when its client gives up, and nothing else is.
func TestCancelInTheMiddleOfACopy(t *testing.T) {
	w := tree(t, map[string]string{"R/": "", "S/": ""})
	if err := os.WriteFile(w+"/R/large", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w+"/R/large", maxCopied); err != nil {
		t.Fatal(err)
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	if err := watcher.Add(w + "/S"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for e := range watcher.Events {
			if e.Has(fsnotify.Write) { // something of it has come
				cancel()
			}
		}
	}()
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly), resolve(t, w+"/S", roots.ReadWrite))
	cancelled(ctx, t, newServer(t), set, "copy_file", fmt.Sprintf(`{"source":%q,"destination":%q}`, w+"/R/large", w+"/S/copy"))
	if left, err := os.ReadDir(w + "/S"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// many makes a server over a directory R/d of 200 files, and a context that ends when one of them in the middle is opened.
func many(t *testing.T) (ctx context.Context, w string, s *Server, set roots.Set, opened *atomic.Int64) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("R/d/%03d", i)] = "text"
	}
	w = tree(t, files)
	ctx, cancel := context.WithCancel(t.Context())
	opened = new(atomic.Int64)
	s = New(Options{Files: rootfs.Options{Deny: func(name string) bool {
		if strings.HasPrefix(name, "d/") && opened.Add(1) == 100 {
			cancel()
		}
		return false
	}}})
	t.Cleanup(s.Close)
	return ctx, w, s, roots.NewSet(resolve(t, w+"/R", roots.ReadWrite)), opened
}

// What was copied of a directory stays, each file of it whole, and no more comes.
func TestCancelInTheMiddleOfADirectory(t *testing.T) {
	ctx, w, s, set, _ := many(t)
	cancelled(ctx, t, s, set, "copy_file", `{"source":"d","destination":"copy"}`)
	left, err := os.ReadDir(w + "/R/copy")
	if err != nil || len(left) == 0 || len(left) > 100 {
		t.Errorf("%d files, %v", len(left), err)
	}
	for _, e := range left {
		if text, err := os.ReadFile(filepath.Join(w, "R/copy", e.Name())); err != nil || string(text) != "text" {
			t.Errorf("%s holds %q, %v", e.Name(), text, err)
		}
	}
}

func TestCancelInTheMiddleOfASearch(t *testing.T) {
	ctx, _, s, set, opened := many(t)
	cancelled(ctx, t, s, set, "search_content", `{"path":".","pattern":"text"}`)
	if n := opened.Load(); n < 100 || n > 150 {
		t.Errorf("%d files were opened", n)
	}
}

// A client that gave a token hears how much was copied.
func TestProgressOfACopy(t *testing.T) {
	w := tree(t, map[string]string{"R/d/1": "text", "R/d/2": "text", "R/d/3": "text"})
	client := listeningCaller{make(chan string, 100)}
	told := ""
	s := New(Options{Files: rootfs.Options{Deny: func(name string) bool {
		if name == "d/3" && told == "" {
			told = client.next(t) // it waits until the client has heard of the others
		}
		return false
	}}})
	t.Cleanup(s.Close)
	r := request(exchange.Legacy, "tools/call", `{"name":"copy_file","arguments":{"source":"d","destination":"copy"}}`,
		roots.NewSet(resolve(t, w+"/R", roots.ReadWrite)))
	r.Msg = r.Msg.WithParams(wire.SetMember(r.Msg.Params(), []byte(`"tok"`), "_meta", "progressToken"))
	r.Caller = client
	if o := exchange.Do(t.Context(), s, r); o.Msg == nil || !strings.Contains(string(o.Msg.Bytes()), "3 files") {
		t.Errorf("the answer is %v", o)
	}
	if !strings.Contains(told, `"params":{"progressToken":"tok","progress":8,"message":"8 bytes copied"}`) {
		t.Errorf("told %s", told)
	}
}

// E122 of the battery: what cannot be moved in one step stays where it is, and the answer says what can be done.
func TestMoveIntoAnotherFileSystem(t *testing.T) {
	there, err := os.MkdirTemp("/dev/shm", "rootbound")
	if err != nil {
		t.Skip("there is no second file system: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(there) })
	w := tree(t, map[string]string{"R/f": "text", "R/d/g": "text"})
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadWrite), resolve(t, there, roots.ReadWrite))
	s := newServer(t)
	for _, name := range []string{"f", "d"} {
		from, to := w+"/R/"+name, there+"/"+name
		got, isError := use(t, s, exchange.Legacy, set, "move_file", fmt.Sprintf(`{"source":%q,"destination":%q}`, from, to))
		want := fmt.Sprintf("EXDEV: cross-device link not permitted, rename '%s' -> '%s'. They are in different file systems, or it is "+
			"a directory of a lower layer (overlayfs), as in a container: copy_file copies it", from, to)
		if !isError || got != want {
			t.Errorf("%s: error %v, %s", name, isError, got)
		}
		if _, err := os.Lstat(from); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(to); err == nil {
			t.Errorf("%s is there", to)
		}
		if got, isError := use(t, s, exchange.Legacy, set, "copy_file", fmt.Sprintf(`{"source":%q,"destination":%q}`, from, to)); isError {
			t.Errorf("copying %s: %s", name, got)
		}
	}
	if text, err := os.ReadFile(there + "/d/g"); err != nil || string(text) != "text" {
		t.Errorf("the copy holds %q, %v", text, err)
	}
}
