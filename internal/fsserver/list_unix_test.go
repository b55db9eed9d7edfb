//go:build unix

package fsserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// each calls a tool with each of the arguments in both eras. $W in arguments and answers is the directory, and an answer that
// begins with ! is an error.
func each(t *testing.T, server *Server, w string, set roots.Set, table []struct{ tool, args, want string }) {
	t.Helper()
	for _, tt := range table {
		want, wantError := strings.CutPrefix(tt.want, "!")
		want = strings.ReplaceAll(want, "$W", w)
		for _, era := range eras {
			got, isError := use(t, server, era, set, tt.tool, strings.ReplaceAll(tt.args, "$W", w))
			if diff := cmp.Diff(want, got); diff != "" || isError != wantError {
				t.Errorf("%v %s %s: error %v, want %v (-want +got):\n%s", era, tt.tool, tt.args, isError, wantError, diff)
			}
		}
	}
}

func compatServer(t testing.TB) *Server {
	s := New(Options{Name: "files", Title: "Files", Version: "1.2", Compat: true})
	t.Cleanup(s.Close)
	return s
}

func TestListDirectoryWithSizes(t *testing.T) {
	w := tree(t, map[string]string{
		"R/big": strings.Repeat("x", 1536), "R/a.txt": "123456789", "R/é": "xy", "R/empty": "", "R/sub/f": "f", "R/none/": "",
		"R/link": "-> big", "R/out": "-> ../canary", "R/a name that is longer than the column": "1", "canary": strings.Repeat("s", 5000),
	})
	const tool = "list_directory_with_sizes"
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	pad := func(s string, n int) string { return s + strings.Repeat(" ", n) }
	byName := strings.Join([]string{
		"[FILE] a name that is longer than the column        1 B",
		"[FILE] " + pad("a.txt", 25) + "        9 B",
		"[FILE] " + pad("big", 27) + "    1.50 KB",
		"[FILE] " + pad("empty", 25) + "        0 B",
		"[FILE] " + pad("link", 26) + "        3 B", // its own size
		"[DIR] " + pad("none", 26) + " ",
		"[FILE] " + pad("out", 27) + "        9 B", // and not that of what is outside
		"[DIR] " + pad("sub", 27) + " ",
		"[FILE] " + pad("é", 29) + "        2 B",
		"",
		"Total: 7 files, 2 directories",
		"Combined size: 1.52 KB",
	}, "\n")
	each(t, newServer(t), w, set, []struct{ tool, args, want string }{
		{tool, `{"path":"$W/R"}`, byName},
		{tool, `{"path":"","sortBy":"name"}`, byName},
		{tool, `{"path":"none"}`, "\nTotal: 0 files, 0 directories\nCombined size: 0 B"},
		{tool, `{"path":"sub"}`, "[FILE] " + pad("f", 29) + "        1 B\n\nTotal: 1 files, 0 directories\nCombined size: 1 B"},
		{tool, `{"path":"a.txt"}`, "!ENOTDIR: not a directory, scandir '$W/R/a.txt'"},
		{tool, `{"path":"nope"}`, "!ENOENT: no such file or directory, scandir '$W/R/nope'"},
		{tool, `{"path":"$W/canary"}`, "!Access denied - path outside allowed directories: $W/canary not in $W/R"},
		{tool, `{"path":".","sortBy":"date"}`, `!MCP error -32602: Input validation error: Invalid arguments for tool ` + tool + `: Invalid option: expected one of "name"|"size" at sortBy`},
	})
	got, _ := use(t, newServer(t), exchange.Modern, set, tool, `{"path":".","sortBy":"size"}`)
	var files []string
	for line := range strings.Lines(got) {
		if rest, ok := strings.CutPrefix(line, "[FILE] "); ok {
			files = append(files, strings.Fields(rest)[0])
		}
	}
	if diff := cmp.Diff([]string{"big", "a.txt", "out", "link", "é", "a", "empty"}, files); diff != "" {
		t.Errorf("by size (-want +got):\n%s", diff)
	}
}

func TestSizeText(t *testing.T) {
	for _, tt := range []struct {
		bytes int64
		want  string
	}{
		{0, "0 B"}, {1, "1 B"}, {1023, "1023 B"}, {1024, "1.00 KB"}, {4096, "4.00 KB"}, {1 << 20, "1.00 MB"}, {3 << 29, "1.50 GB"}, {5 << 40, "5.00 TB"}, {1 << 60, "1048576.00 TB"},
	} {
		if got := sizeText(tt.bytes); got != tt.want {
			t.Errorf("%d bytes are %q, want %q", tt.bytes, got, tt.want)
		}
	}
}

func TestLongListsWithSizesSayWhatIsLeftOut(t *testing.T) {
	entries := make([]sizedEntry, 3)
	for i := range entries {
		entries[i].Name, entries[i].size = string(rune('a'+i)), 1
	}
	line := func(name string) string { return "[FILE] " + name + strings.Repeat(" ", 29) + "        1 B\n" }
	const total = "\nTotal: 3 files, 0 directories\nCombined size: 3 B"
	for _, tt := range []struct {
		server *Server
		from   int
		bySize bool
		want   string
	}{
		{compatServer(t), 0, false, line("a") + "2 more names are not listed, because one answer carries at most 10 bytes of them.\n" + total},
		{newServer(t), 0, false, line("a") + "2 more names are not listed, because one answer carries at most 10 bytes of them. To go on, call again with \"cursor\":\"a\".\n" + total},
		{newServer(t), 1, true, line("b") + "1 more name is not listed, because one answer carries at most 10 bytes of them. To go on, call again with \"cursor\":\"1/b\".\n" + total},
		{newServer(t), 2, false, line("c") + total},
		{newServer(t), 3, false, total},
	} {
		if got := (&call{Server: tt.server}).listSizes(entries, tt.from, 10, tt.bySize, nil); got != tt.want {
			t.Errorf("from %d: got %q\nwant %q", tt.from, got, tt.want)
		}
	}
}

func TestGetFileInfo(t *testing.T) {
	w := tree(t, map[string]string{"R/a.txt": "123456789", "R/sub/": "", "R/link": "-> a.txt", "R/out": "-> ../canary", "canary": "x"})
	if err := os.Chmod(w+"/R/a.txt", 0o640); err != nil {
		t.Fatal(err)
	}
	changed := time.Date(2026, 3, 9, 7, 5, 6, 0, time.UTC)
	if err := os.Chtimes(w+"/R/a.txt", changed, changed); err != nil {
		t.Fatal(err)
	}
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	date := `[A-Z][a-z]{2} [A-Z][a-z]{2} [0-9]{2} [0-9]{4} [0-9:]{8} GMT[+-][0-9]{4} \([^)]+\)`
	at := regexp.QuoteMeta(dateText(changed))
	file := "size: 9\ncreated: " + date + "\nmodified: " + at + "\naccessed: " + at + "\nisDirectory: false\nisFile: true\npermissions: 640"
	for args, want := range map[string]string{
		`{"path":"a.txt"}`: file,
		`{"path":"link"}`:  file,
		`{"path":"sub"}`:   `size: [0-9]+` + "\ncreated: " + date + "\nmodified: " + date + "\naccessed: " + date + "\nisDirectory: true\nisFile: false\npermissions: 755",
		`{"path":"nope"}`:  regexp.QuoteMeta("ENOENT: no such file or directory, stat '" + w + "/R/nope'"),
		`{"path":"out"}`:   regexp.QuoteMeta("Access denied - symlink target outside allowed directories, or missing: " + w + "/R/out not in " + w + "/R"),
	} {
		for _, era := range eras {
			got, isError := use(t, compatServer(t), era, set, "get_file_info", args)
			if !regexp.MustCompile("^" + want + "$").MatchString(got) {
				t.Errorf("%v %s: %q, want %q", era, args, got, want)
			}
			if with, _ := use(t, newServer(t), era, set, "get_file_info", args); !isError && !regexp.MustCompile("^"+want+"\nversion: [0-9a-z-]+$").MatchString(with) {
				t.Errorf("%v %s, with its version: %q", era, args, with)
			}
		}
	}
}

func TestDatesAreThoseOfJavaScript(t *testing.T) {
	for _, tt := range []struct {
		zone *time.Location
		want string
	}{
		{time.UTC, "Mon Mar 09 2026 07:05:06 GMT+0000 (Coordinated Universal Time)"},
		{time.FixedZone("IST", 19800), "Mon Mar 09 2026 12:35:06 GMT+0530 (IST)"},
	} {
		local := time.Local
		time.Local = tt.zone
		got := dateText(time.Date(2026, 3, 9, 7, 5, 6, 0, time.UTC))
		time.Local = local
		if got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// What may be done where, and what holds the server to it, is for programs; the text stays that of the reference server.
func TestAllowedDirectoriesForPrograms(t *testing.T) {
	w := tree(t, session)
	a := resolve(t, filepath.Join(w, "R"), roots.ReadWrite)
	a.Name = "work"
	set := roots.NewSet(a, resolve(t, filepath.Join(w, "S"), roots.ReadOnly), resolve(t, filepath.Join(w, "outside"), 0))
	text := "Allowed directories:\n" + w + "/R\n" + w + "/S"
	held := "nothing" // what holds it now, not what held it when it was started
	protection := func() string { return "held by " + held }
	for _, tt := range []struct {
		o    Options
		want map[string]any
	}{
		{Options{Protection: protection}, map[string]any{"content": text, "protection": "held by Landlock", "directories": []any{
			map[string]any{"path": w + "/R", "name": "work", "access": []any{"read", "write", "delete"}},
			map[string]any{"path": w + "/S", "access": []any{"read"}},
		}}},
		{Options{Compat: true, Protection: protection}, map[string]any{"content": text}},
	} {
		tt.o.Name, tt.o.Title, tt.o.Version = "files", "Files", "1.2"
		held = "nothing"
		server := New(tt.o)
		defer server.Close()
		held = "Landlock"
		for _, era := range eras {
			result := ask(t, server, request(era, "tools/call", `{"name":"list_allowed_directories"}`, set))
			structured, _ := wire.Get([]byte(result), "structuredContent")
			var got map[string]any
			if err := json.Unmarshal(structured, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", era, diff)
			}
		}
	}
}
