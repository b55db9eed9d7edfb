package fsserver

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/roots"
)

// https://github.com/entireio/cli/pull/2308: a FIFO, socket or device is refused at once, in every role, and holds up nobody.
func TestSpecialFiles(t *testing.T) {
	w := tree(t, map[string]string{"R/a.txt": "text", "R/link": "-> fifo"})
	fifo := filepath.Join(w, "R/fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(w, "R/s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dev, err := roots.Resolve("/dev", roots.ResolveOptions{Access: roots.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	server, set := newServer(t), roots.NewSet(resolve(t, filepath.Join(w, "R"), roots.ReadOnly), dev)
	special := func(path string) string { return "Access denied - not a regular file or directory: " + path }
	for _, tt := range []struct{ tool, args, want string }{
		{"read_text_file", `{"path":"fifo"}`, special(fifo)},
		{"read_text_file", `{"path":"fifo","head":1}`, special(fifo)},
		{"read_text_file", `{"path":"fifo","tail":1}`, special(fifo)},
		{"read_text_file", `{"path":"link"}`, special(fifo)},
		{"read_text_file", `{"path":"s"}`, special(w + "/R/s")},
		{"read_text_file", `{"path":"/dev/zero","head":1}`, special("/dev/zero")},
		{"read_text_file", `{"path":"fifo/x"}`, "ENOTDIR: not a directory, realpath '" + fifo + "/x'"},
		{"list_directory", `{"path":"fifo"}`, "ENOTDIR: not a directory, scandir '" + fifo + "'"},
		{"list_directory", `{"path":"."}`, "[FILE] a.txt\n[FILE] fifo\n[FILE] link\n[FILE] s"},
	} {
		if got, _ := use(t, server, exchange.Legacy, set, tt.tool, tt.args); got != tt.want {
			t.Errorf("%s %s:\n got %q\nwant %q", tt.tool, tt.args, got, tt.want)
		}
	}
	replies := make(chan exchange.Outcome, 64)
	for range cap(replies) {
		server.Handle(t.Context(), request(exchange.Legacy, "tools/call", `{"name":"read_text_file","arguments":{"path":"fifo"}}`, set), func(o exchange.Outcome) { replies <- o })
	}
	if got, _ := use(t, server, exchange.Legacy, set, "read_text_file", `{"path":"a.txt"}`); got != "text" {
		t.Errorf("beside the FIFOs: %q", got)
	}
	for range cap(replies) {
		<-replies
	}
}

// A kernel file system can be no root; what a root of one would say is never read.
func TestKernelFilesAreRefused(t *testing.T) {
	d := roots.Dir{Path: "/proc/sys", Access: roots.ReadOnly}
	for _, tool := range []string{"read_text_file", "list_directory"} {
		got, isError := use(t, newServer(t), exchange.Legacy, roots.NewSet(d), tool, `{"path":"/proc/sys/kernel/hostname"}`)
		if !isError || !strings.HasPrefix(got, "Access denied - the allowed directories cannot be used now: ") {
			t.Errorf("%s: %q", tool, got)
		}
	}
}

// A name that is not UTF-8 is listed as a URI, and sending that back reads the file, by every road to its directory.
func TestNamesThatAreNotText(t *testing.T) {
	w := tree(t, map[string]string{
		"R/bad\xff/caf\xe9": "latin", "R/bad\xff/é": "text", "R/bad\xff/d\xe9/x\x80": "deep", "R/link": "-> bad\xff", "S/": "",
	})
	server := newServer(t)
	set := roots.NewSet(resolve(t, filepath.Join(w, "S"), roots.ReadOnly), resolve(t, filepath.Join(w, "R"), roots.ReadOnly))
	list := func(path string) []string {
		t.Helper()
		text, isError := use(t, server, exchange.Modern, set, "list_directory", `{"path":`+quoteJSON(path)+`}`)
		if isError {
			t.Fatalf("listing %q: %s", path, text)
		}
		return strings.Split(text, "\n")
	}
	uri := "file://" + w + "/R/bad%FF"
	if got := list(w + "/R"); len(got) != 2 || got[0] != "[DIR] "+uri || got[1] != "[FILE] link" {
		t.Fatalf("R is %q", got)
	}
	for _, road := range []string{uri, "link", w + "/R/link", w + "/R/link/../link/."} {
		got := list(road)
		want := []string{"[FILE] " + uri + "/caf%E9", "[DIR] " + uri + "/d%E9", "[FILE] é"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q is\n%q, want\n%q", road, got, want)
		}
	}
	for path, want := range map[string]string{
		uri + "/caf%E9":    "latin",
		uri + "/d%E9/x%80": "deep",
		uri + "/é":         "text",
		uri + "/nope":      "ENOENT: no such file or directory, open '" + uri + "/nope'",
		uri:                "EISDIR: illegal operation on a directory, read",
	} {
		if got, _ := use(t, server, exchange.Modern, set, "read_text_file", `{"path":`+quoteJSON(path)+`}`); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// No call leaves a file or a directory open, however it ends; what the sets hold goes with Close.
func TestNothingStaysOpen(t *testing.T) {
	w := tree(t, session)
	open := func() int {
		t.Helper()
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	server := newServer(t)
	dirs := []roots.Dir{resolve(t, w+"/R", roots.ReadOnly), resolve(t, w+"/S", roots.ReadOnly), resolve(t, w+"/home", roots.ReadOnly)}
	all := func() {
		for _, set := range []roots.Set{roots.NewSet(dirs...), roots.NewSet(dirs[:2]...), roots.NewSet(dirs[1:]...), roots.NewSet(dirs[0])} {
			for name := range session {
				for _, path := range []string{name, w + "/" + name, strings.TrimPrefix(name, "R/")} {
					for _, tool := range tools {
						use(t, server, exchange.Legacy, set, tool.name, `{"path":`+quoteJSON(path)+`}`)
						use(t, server, exchange.Legacy, set, tool.name, `{"tail":1,"path":`+quoteJSON(path)+`}`)
					}
				}
			}
		}
	}
	before := open()
	all()
	server.Close()
	after := open()
	for begin := time.Now(); after != before && time.Since(begin) < mcptest.Patience; after = open() {
		runtime.Gosched() // what was cleaned when the sets were opened is closed behind them
	}
	if after != before {
		t.Errorf("%d open before, %d after", before, after)
	}
}
