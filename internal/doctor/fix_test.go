package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rootbound/rootbound/internal/clientconf"
)

// What --fix makes of the samples is in testdata/mended.txtar: only those that it changes, and nothing of the others.
func TestMended(t *testing.T) {
	file := filepath.Join("testdata", "mended.txtar")
	want, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: want.Comment}
	mended := map[string]bool{}
	for _, s := range samples(t) {
		m := elsewhere()
		files, err := FilesOf(m, s.client, s.write(t))
		if err != nil {
			t.Fatal(err)
		}
		r := Examine(m, files)
		list, _ := Fixes(m, files, r)
		for _, a := range list {
			text := a.Draft.Bytes()
			if !strings.HasSuffix(string(text), "\n") {
				t.Errorf("%s: the last line end is gone", s.name)
			}
			got.Files = append(got.Files, txtar.File{Name: s.name, Data: text})
			again := Examine(m, []*clientconf.File{a.File.With(text)})
			for _, f := range a.Mends {
				mended[f.ID] = true
				if n, now := count(r, f.ID), count(again, f.ID); now >= n {
					t.Errorf("%s: %s was found %d times, and is %d times now:\n%s", s.name, f.ID, n, now, text)
				}
			}
			files[len(files)-1] = a.File.With(text)
			if more, _ := Fixes(m, files, Examine(m, files)); len(more) > 0 && !a.File.Dead() {
				t.Errorf("%s: a second time there is more to mend: %v", s.name, more[0].Mends)
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(txtar.Format(want)), string(txtar.Format(got))); diff != "" {
		t.Errorf("mended samples (-want +got); -update writes them:\n%s", diff)
	}
	for _, k := range Kinds {
		if k.Safe != mended[k.ID] {
			t.Errorf("%s: that it can be mended is %v in the table, and %v in the samples", k.ID, k.Safe, mended[k.ID])
		}
	}
}

func count(r *Report, id string) (n int) {
	for _, f := range r.Findings {
		if f.ID == id {
			n++
		}
	}
	return n
}

// A mend leaves line ends, comments and everything else of a file.
func TestMendsLeaveTheRest(t *testing.T) {
	for _, tt := range []struct{ client, name, before, after string }{
		{
			"cline", "cline_mcp_settings.json",
			"{\r\n\t\"big\": 12345678901234567890,\r\n\t\"mcpServers\": {\"a\": {\"command\": \"/opt/x\",  \"timeout\" : 60000 }}\r\n}",
			"{\r\n\t\"big\": 12345678901234567890,\r\n\t\"mcpServers\": {\"a\": {\"command\": \"/opt/x\",  \"timeout\" : 60 }}\r\n}",
		},
		{
			"zed", "settings.json",
			"// é\n{\"context_servers\": {\"a\": {\"command\": \"npx\", \"args\": [\"é\", \"~/x\"], /* ~/x */ }}}\n",
			"// é\n{\"context_servers\": {\"a\": {\"command\": \"npx\", \"args\": [\"é\", \"/home/ana/x\"], /* ~/x */ }}}\n",
		},
		{
			"codex", "config.toml",
			"[mcp_servers.a] # ~/x\ncommand = 'npx'\nargs = ['-y', 'owner/name'] # owner/name\n",
			"[mcp_servers.a] # ~/x\ncommand = 'npx'\nargs = ['-y', '@owner/name'] # owner/name\n",
		},
		{
			"goose", "config.yaml",
			"extensions:\n  a: # cmd\n    type: stdio\n    command: /opt/x # command\n    args: [~/x, 'b']\n",
			"extensions:\n  a: # cmd\n    type: stdio\n    cmd: /opt/x # command\n    args: [/home/ana/x, 'b']\n",
		},
		{ // both would then be there
			"goose", "config.yaml",
			"extensions:\n  a: {type: stdio, cmd: /opt/x, command: /opt/y}\n",
			"",
		},
		{ // an escape in the value: by hand
			"cline", "cline_mcp_settings.json",
			`{"mcpServers": {"a": {"command": "/opt/x", "args": ["~/\u0078"]}}}`,
			"",
		},
		{ // two servers of one name: which one is meant is not for us to say
			"cline", "cline_mcp_settings.json",
			`{"mcpServers": {"a": {"command": "/opt/x", "timeout": 60000}, "a": {"command": "/opt/x"}}}`,
			"",
		},
	} {
		path := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(path, []byte(tt.before), 0o644); err != nil {
			t.Fatal(err)
		}
		m := elsewhere()
		files, err := FilesOf(m, tt.client, path)
		if err != nil {
			t.Fatal(err)
		}
		list, _ := Fixes(m, files, Examine(m, files))
		got := ""
		if len(list) > 0 {
			got = string(list[0].Draft.Bytes())
		}
		if diff := cmp.Diff(tt.after, got); diff != "" {
			t.Errorf("mending %s (-want +got):\n%s", tt.before, diff)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != tt.before {
			t.Errorf("the file was written: %q, %v", now, err)
		}
	}
}

// Two mends of one value come one after the other.
func TestTwoMendsOfOneValue(t *testing.T) {
	c, _ := clientconf.Lookup("cline")
	f := clientconf.ParseAs(c, "/cline_mcp_settings.json", []byte(`{"mcpServers": {"a": {"command": "/opt/x", "args": ["~/${A}/$B"]}}}`))
	m := elsewhere()
	rounds := 0
	for ; rounds < 5; rounds++ {
		files := []*clientconf.File{f}
		list, errs := Fixes(m, files, Examine(m, files))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if len(list) == 0 {
			break
		}
		f = f.With(list[0].Draft.Bytes())
	}
	want := `{"mcpServers": {"a": {"command": "/opt/x", "args": ["/home/ana/${env:A}/${env:B}"]}}}`
	if diff := cmp.Diff(want, string(f.Text())); diff != "" || rounds != 3 {
		t.Errorf("after %d rounds (-want +got):\n%s", rounds, diff)
	}
}

// A package whose name is mended may have more to it, as long as that is no error; then what is of other servers is mended.
func TestMendsThatShowMore(t *testing.T) {
	c, _ := clientconf.Lookup("cline")
	f := clientconf.ParseAs(c, "/cline_mcp_settings.json", []byte(`{"mcpServers": {
	  "wide": {"command": "npx", "args": ["owner/name", "modelcontextprotocol/server-filesystem"], "timeout": 60000},
	  "disk": {"command": "npx", "args": ["modelcontextprotocol/server-filesystem", "/"], "timeout": 60000},
	  "loose": {"command": "npx", "args": ["modelcontextprotocol/server-filesystem", "/srv/a"], "timeout": 60000}
	}}`))
	m := elsewhere()
	m.Alone = false
	files := []*clientconf.File{f}
	list, errs := Fixes(m, files, Examine(m, files))
	if len(list) != 1 {
		t.Fatalf("%d files are mended; %v", len(list), errs)
	}
	want := `{"mcpServers": {
	  "wide": {"command": "npx", "args": ["@owner/name", "modelcontextprotocol/server-filesystem"], "timeout": 60},
	  "disk": {"command": "npx", "args": ["modelcontextprotocol/server-filesystem", "/"], "timeout": 60000},
	  "loose": {"command": "npx", "args": ["@modelcontextprotocol/server-filesystem", "/srv/a"], "timeout": 60}
	}}`
	if diff := cmp.Diff(want, string(list[0].Draft.Bytes())); diff != "" {
		t.Errorf("mended (-want +got):\n%s", diff)
	}
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "the edit would bring ROOT-BROAD") {
		t.Errorf("not mended: %v", err)
	}
}

// Whatever is in a file, it is judged without a crash, findings have places in it, and what is mended is read by its client.
func FuzzExamine(f *testing.F) {
	clients := clientconf.Clients()
	for _, s := range samples(f) {
		i := slices.IndexFunc(clients, func(c *clientconf.Client) bool { return c.ID == s.client })
		f.Add(uint8(i), filepath.Base(s.name), s.text)
	}
	f.Fuzz(func(t *testing.T, n uint8, name string, text []byte) {
		c := clients[int(n)%len(clients)]
		file := clientconf.ParseAs(c, "/"+name, text)
		m := elsewhere()
		files := []*clientconf.File{file}
		r := Examine(m, files)
		lines := strings.Count(string(text), "\n") + 1
		for _, f := range r.Findings {
			if f.Line < 1 || f.Line > lines || f.Column < 1 {
				t.Fatalf("%s is at %d:%d of %d lines", f.ID, f.Line, f.Column, lines)
			}
		}
		list, _ := Fixes(m, files, r)
		for _, a := range list {
			if again := file.With(a.Draft.Bytes()); again.Dead() {
				t.Fatalf("the mended file cannot be read:\n%s", a.Draft.Bytes())
			}
		}
	})
}

func TestWrapping(t *testing.T) {
	for _, tt := range []struct{ client, server, want string }{
		{"cursor", "files", "rootbound wrap cursor --server files --write"},
		{"kiro", "my files", "rootbound wrap kiro --server 'my files' --print"},
		{"zed", "it's; x", `rootbound wrap zed --server 'it'\''s; x' --write`},
	} {
		if got := wrapping(tt.client, tt.server); got != tt.want {
			t.Errorf("wrapping(%q, %q) = %q, want %q", tt.client, tt.server, got, tt.want)
		}
	}
}
