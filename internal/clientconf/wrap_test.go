package clientconf

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
)

const program = "/opt/rootbound/bin/rootbound"

// sample is a file of a client that is edited.
type sample struct {
	client *Client
	name   string
	text   []byte
}

func samples(t testing.TB) []sample {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", "writable.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var list []sample
	for _, f := range a.Files {
		id, name, _ := strings.Cut(f.Name, "/")
		c, ok := Lookup(id)
		if !ok {
			t.Fatalf("there is no client %q", id)
		}
		list = append(list, sample{c, name, f.Data})
	}
	return list
}

// variants are the forms in which a text can lie on a disk.
func (s sample) variants() map[string][]byte {
	m := map[string][]byte{
		"as it is":          s.text,
		"CRLF":              bytes.ReplaceAll(s.text, []byte("\n"), []byte("\r\n")),
		"no final line end": bytes.TrimRight(s.text, "\n"),
		"with much else":    s.text,
	}
	if f := ParseAs(s.client, s.name, s.text).Place.Format; f.BOM {
		m["BOM"] = append([]byte("\ufeff"), s.text...)
	}
	pad := strings.Repeat("x", 1<<17)
	switch ParseAs(s.client, s.name, s.text).Place.Format.Grammar {
	case TOML:
		m["with much else"] = append([]byte("pad = \""+pad+"\"\n"), s.text...)
	case YAML:
		m["with much else"] = append([]byte("pad: "+pad[:1<<14]+"\n"), s.text...)
	default:
		m["with much else"] = bytes.Replace(s.text, []byte("{"), []byte("{\"pad\": \""+pad+"\","), 1)
	}
	return m
}

// wrapAll wraps every server of a text that has a command.
func wrapAll(c *Client, name string, text []byte) ([]byte, *File, error) {
	f := ParseAs(c, name, text)
	d, err := f.Draft()
	if err != nil {
		return nil, f, err
	}
	for _, s := range f.Servers {
		if s.Command.Given() && !s.Unread {
			if err := d.Wrap(s, program); err != nil {
				return nil, f, err
			}
		}
	}
	return d.Bytes(), f, nil
}

func unwrapAll(c *Client, name string, text []byte) ([]byte, error) {
	f := ParseAs(c, name, text)
	d, err := f.Draft()
	if err != nil {
		return nil, err
	}
	for _, s := range f.Servers {
		if err := d.Unwrap(s); err != nil {
			return nil, err
		}
	}
	return d.Bytes(), nil
}

func TestWrapAndUnwrap(t *testing.T) {
	seen, large := map[string]bool{}, map[Grammar]bool{}
	for _, s := range samples(t) {
		seen[s.client.ID] = true
		variants := s.variants()
		if g := ParseAs(s.client, s.name, s.text).Place.Format.Grammar; large[g] {
			delete(variants, "with much else") // once for each grammar will do
		} else {
			large[g] = true
		}
		for variant, text := range variants {
			t.Run(s.client.ID+"/"+s.name+"/"+variant, func(t *testing.T) {
				wrapped, before, err := wrapAll(s.client, s.name, text)
				if err != nil {
					t.Fatal(err)
				}
				if len(before.Servers) == 0 {
					t.Fatal("there is no server in it")
				}
				after := ParseAs(s.client, s.name, wrapped)
				if len(after.Servers) != len(before.Servers) {
					t.Fatalf("there are %d servers, there were %d", len(after.Servers), len(before.Servers))
				}
				for i, was := range before.Servers {
					is := after.Servers[i]
					if !was.Command.Given() {
						continue
					}
					g, ok := is.Guard()
					if !ok {
						t.Errorf("%s is not wrapped: %q %q", is.Name, is.Command.Text, is.Args)
						continue
					}
					want := was.Launch()
					if g.Program != program || is.Name != was.Name || g.Own.Path != want.Path || !slices.Equal(g.Own.Args, want.Args) {
						t.Errorf("%s runs %q %q behind %q, want %q %q", is.Name, g.Own.Path, g.Own.Args, g.Program, want.Path, want.Args)
					}
				}
				if twice, _, err := wrapAll(s.client, s.name, wrapped); err != nil || !bytes.Equal(twice, wrapped) {
					t.Errorf("wrapping twice is not wrapping once: %v", err)
				}
				back, err := unwrapAll(s.client, s.name, wrapped)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(back, text) && len(text) < 1<<14 {
					t.Errorf("unwrapping does not restore the file (-was +is):\n%s\nover\n%s", cmp.Diff(string(text), string(back)), wrapped)
				} else if !bytes.Equal(back, text) {
					t.Error("unwrapping does not restore the file")
				}
			})
		}
	}
	for _, c := range Clients() {
		if c.Writable && !seen[c.ID] {
			t.Errorf("no sample is a file of %s", c.Name)
		}
	}
}

// A client's own state of megabytes is no matter.
func TestWrapInALargeFile(t *testing.T) {
	text := []byte(`{"history": ["` + strings.Repeat("x", 3<<20) + strings.Repeat(`x", "`, 1<<14) + `"], "mcpServers": {"a": {"command": "x", "args": []}}, "n": 12345678901234567890}`)
	c, _ := Lookup("claude-code")
	wrapped, _, err := wrapAll(c, ".claude.json", text)
	if err != nil {
		t.Fatal(err)
	}
	back, err := unwrapAll(c, ".claude.json", wrapped)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(wrapped, text) || !bytes.Equal(back, text) {
		t.Error("unwrapping does not restore the file")
	}
}

// What a client or a person changes between is there afterwards, and nothing else.
func TestUnwrapAfterEdits(t *testing.T) {
	const text = `{
  "mcpServers": {
    "fs": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/app"],
      "env": { "LEVEL": "warn" }
    },
    "bare": { "command": "serve" },
    "none": {
      "command": "serve",
      "args": []
    }
  }
}
`
	c, _ := Lookup("cursor")
	edit := func(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }
	indent := func(text string) string {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, change := range map[string]func(string) string{
		"nothing":                   edit(),
		"another argument":          edit(`"/srv/app"]`, `"/srv/app", "/srv/docs"]`),
		"another environment":       edit(`"warn"`, `"debug", "PORT": "1"`),
		"another key":               edit(`"fs": {`, `"fs": { "disabled": true,`),
		"another server":            edit(`"fs": {`, `"new": { "command": "x" }, "fs": {`),
		"one less":                  edit(`, "/srv/app"]`, `]`),
		"other line ends":           edit("\n", "\r\n"),
		"laid out anew":             indent,
		"no layout":                 func(text string) string { return strings.NewReplacer("\n", "", " ", "").Replace(text) },
		"another name":              edit(`"fs"`, `"files"`),
		"keys in another order":     edit(`"mcpServers"`, `"version": 2, "mcpServers"`),
		"anew, with another server": func(text string) string { return indent(edit(`"fs": {`, `"new": {}, "fs": {`)(text)) },
	} {
		t.Run(name, func(t *testing.T) {
			wrapped, _, err := wrapAll(c, "mcp.json", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			back, err := unwrapAll(c, "mcp.json", []byte(change(string(wrapped))))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(change(text), string(back)); diff != "" {
				t.Errorf("(-edited +unwrapped):\n%s", diff)
			}
		})
	}
}

// A client that writes YAML or TOML anew does it in its own way.
func TestUnwrapAfterYAMLIsWrittenAnew(t *testing.T) {
	const text = "extensions:\n  fs:\n    type: stdio\n    cmd: npx\n    args:\n    - -y\n    - /srv/app\n  none:\n    cmd: serve\n    args: []\n  bare:\n    cmd: serve\n"
	anew := func(text string) string {
		var all map[string]any
		if err := yaml.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		out, err := yaml.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	c, _ := Lookup("goose")
	wrapped, _, err := wrapAll(c, "config.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	back, err := unwrapAll(c, "config.yaml", []byte(anew(string(wrapped))))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(anew(text), string(back)); diff != "" {
		t.Errorf("(-written anew +unwrapped):\n%s", diff)
	}
}

func TestUnwrapByHand(t *testing.T) {
	c, _ := Lookup("cursor")
	for _, x := range []struct{ text, want string }{
		{`{"mcpServers":{"a":{"command":"rootbound","args":["run","--root","/srv","--confine","--","npx","x"]}}}`, `{"mcpServers":{"a":{"command":"npx","args":["x"]}}}`},
		{`{"mcpServers":{"a":{"command":"C:\\bin\\Rootbound.EXE","args":["run","--","npx"]}}}`, `{"mcpServers":{"a":{"command":"npx","args":[]}}}`},
	} {
		got, err := unwrapAll(c, "mcp.json", []byte(x.text))
		if err != nil || string(got) != x.want {
			t.Errorf("unwrapping\n%s made\n%s, %v, want\n%s", x.text, got, err, x.want)
		}
	}
	for _, same := range []string{
		`{"mcpServers":{"a":{"command":"rootbound","args":["fs","/srv"]}}}`,
		`{"mcpServers":{"a":{"command":"rootbound","args":["run","--config","x","--server","a"]}}}`,
		`{"mcpServers":{"a":{"command":"rootbound","args":["run","--"]}}}`,
		`{"mcpServers":{"a":{"command":"npx","args":["run","--","rootbound"]}}}`,
		`{"mcpServers":{"a":{"command":["rootbound","run","--","npx"]}}}`,
		`{"mcpServers":{"a":{"command":"rootbound","args":"run -- npx"}}}`,
	} {
		if got, err := unwrapAll(c, "mcp.json", []byte(same)); err != nil || string(got) != same {
			t.Errorf("unwrapping\n%s made\n%s, %v", same, got, err)
		}
	}
}

// What could be taken for something else is not edited.
func TestWrapRefuses(t *testing.T) {
	for _, x := range []struct{ client, name, text, want string }{
		{"cursor", "mcp.json", `{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}`, `1:36: "a" is given twice`},
		{"cursor", "mcp.json", `{"mcpServers":{"a":{"command":"x"}}, "mcpServers":{}}`, `"mcpServers" is given twice`},
		{"cursor", "mcp.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}} // c", "comments are not allowed here"},
		{"claude-desktop", "claude_desktop_config.json", "\ufeff{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}", "byte order mark"},
		{"cursor", "mcp.json", `{"mcpServers":{"a":{"command":"x","args":null}}}`, "args is null and no list"},
		{"cursor", "mcp.json", `{"mcpServers":{"a":{"command":"x","args":"y"}}}`, "args is a string and no list"},
		{"opencode", "opencode.json", `{"mcp":{"a":{"type":"local","command":"x y"}}}`, "this is a string and no array"},
		{"codex", "config.toml", "[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a]\n", "already exists"},
		{"goose", "config.yaml", "extensions:\n  a: &a\n    cmd: x\n    args: [y]\n  b: *a\n", "by hand"},
		{"goose", "config.yaml", "extensions:\n  a:\n    cmd: !!str x\n    args: [y]\n", "by hand"},
		{"goose", "config.yaml", "extensions:\n  a:\n    cmd: /opt/a,b/x\n    args: [y]\n", "put quotes around its command first"},
		{"goose", "config.yaml", "extensions:\n  a:\n    cmd: >-\n      x\n    args: [y]\n", "by hand"},
		{"lmstudio", "mcp.json", `{"mcpServers":{"a":{"command":"x"}}}`, "where its file is differs"},
	} {
		c, _ := Lookup(x.client)
		got, _, err := wrapAll(c, x.name, []byte(x.text))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("wrapping\n%s made\n%s, %v, want %q", x.text, got, err, x.want)
		}
	}
}
