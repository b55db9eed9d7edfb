package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/launch"
)

func TestAServerWithAURL(t *testing.T) {
	h := newHome(t)
	h.write(user, "[server.there]\nurl = \"https://mcp.example.com/mcp?key=hunter2\"\nheaders = { X-Team = \"a\", authorization = \"Bearer ${env:TOKEN}\" }\n"+
		"remote_roots = [\"/srv/repo\"]\nserver_protocol = \"legacy\"\n")
	h.dir("work/.git")
	p := h.resolve(Flags{Headers: []string{"x-team: b"}, ClientProtocol: "modern", ShareRoots: true})
	if err := p.Runnable(); err != nil {
		t.Error(err)
	}
	if p.Roots.Len() > 0 || p.Source != FromNowhere {
		t.Errorf("roots %v from %v", p.Roots, p.Source)
	}
	if p.Paths.Value != launch.Elsewhere || !p.ShareRoots.Value || p.ServerProtocol.Value != "legacy" || p.ClientProtocol.Value != "modern" {
		t.Errorf("got %+v", p.Choices)
	}
	if got := p.Headers.Value; len(got) != 2 || got["X-Team"] != "b" || got["Authorization"] != "Bearer ${env:TOKEN}" {
		t.Errorf("headers %v", got)
	}
	for _, r := range p.Show() {
		if strings.Contains(r.Value, "hunter2") || strings.Contains(r.Value, "TOKEN") {
			t.Errorf("Show says %v", r)
		}
	}
	// What is typed is a server of its own.
	p = h.resolve(Flags{URL: "http://127.0.0.1:3000/mcp"})
	if p.Server != "" || p.URL.Value != "http://127.0.0.1:3000/mcp" || p.Headers.Given() || p.ServerProtocol.Value != "auto" {
		t.Errorf("got %+v", p)
	}
	if p = h.resolve(Flags{Command: []string{"x"}}); p.URL.Given() || p.Command.Path != "x" {
		t.Errorf("got %+v", p)
	}
}

func TestClientFilesWithURLs(t *testing.T) {
	h := newHome(t)
	h.write("other/mcp.json", `{"mcpServers":{"a":{"type":"http","url":"https://h/mcp","headers":{"Authorization":"Bearer ${TOKEN}"}}}}`)
	p := h.resolve(Flags{Config: h.path("other/mcp.json")})
	if p.URL.Value != "https://h/mcp" || p.Headers.Value["Authorization"] != "Bearer ${TOKEN}" {
		t.Errorf("got %+v", p.Remote)
	}
}

func TestFaultsOfRemoteServers(t *testing.T) {
	for text, want := range map[string]string{
		"url = \"ftp://h/\"":                                       "begins with https://",
		"url = \"https://u:hunter2@h/\"":                           "does not stand in the URL",
		"url = \"https:///x\"":                                     "no host",
		"url = \"https://h/#a\"":                                   "no fragment",
		"url = \"https://h/\"\ncommand = \"x\"":                    "a command and a URL",
		"headers = { A = \"b\" }":                                  "headers and no URL",
		"url = \"https://h/\"\nheaders = { \"a b\" = \"c\" }":      "no name of a header",
		"url = \"https://h/\"\nheaders = { Host = \"c\" }":         "ours to set",
		"url = \"https://h/\"\nheaders = { mcp-session-id = 'c' }": "ours to set",
		"url = \"https://h/\"\nheaders = { A = \"hunter2\\n\" }":   "cannot have",
		"url = \"https://h/\"\nheaders = { A = \"${x:y}\" }":       "${env:NAME}",
		"url = \"https://h/\"\nheaders = { A = \"${env:x\" }":      "${env:NAME}",
		"remote_roots = [\"srv\"]":                                 "no absolute path",
		"remote_roots = [\"/srv/../x\"]":                           "no absolute path",
		"server_protocol = \"2025-11-26\"":                         `did you mean "2025-11-25"?`,
	} {
		_, err := Parse("/c.toml", []byte("[server.a]\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, f := range []Flags{
		{URL: "https://h/", Command: []string{"x"}}, {Headers: []string{"A: b"}, Command: []string{"x"}}, {URL: "https://h/", Headers: []string{"hunter2"}},
		{URL: "nonsense"}, {URL: "https://h/", RemoteRoots: []string{"."}}, {URL: "https://h/", ServerProtocol: "new"},
	} {
		h := newHome(t)
		if _, err := Resolve(h.sys, f); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// A project cannot send anything anywhere, nor say how its server is spoken to.
func TestAProjectHasNoURLs(t *testing.T) {
	h := newHome(t)
	h.write(user, "[server.a]\ncommand = \"x\"\n")
	for _, text := range []string{"url = \"https://h/\"", "remote_roots = [\"/a\"]", "forward_authorization = true", "server_protocol = \"modern\""} {
		h.write(project, "[server.a]\n"+text+"\n")
		if _, err := Resolve(h.sys, Flags{}); err == nil || !strings.Contains(err.Error(), "a project's file only narrows") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	env := func(name string) (string, bool) { return "v", name == "A" }
	file := func(path string) (string, error) {
		if path != "/f" {
			return "", errors.New("not there")
		}
		return "w", nil
	}
	for value, want := range map[string]string{
		"plain": "plain", "Bearer ${env:A}": "Bearer v", "${A}${file:/f}.": "vw.", "$A": "$A", "": "", "${env:B}": "!", "${file:/g}": "!", "${env:A": "!",
	} {
		got, err := Secrets(value, env, file)
		if (err != nil) != (want == "!") || err == nil && got != want {
			t.Errorf("Secrets(%q) = %q, %v", value, got, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	for text, want := range map[string]bool{
		"http://localhost:1/": true, "http://127.9.9.9/": true, "http://[::1]:2/": true, "http://a.localhost./": true, "http://localhost.example.com/": false, "http://10.0.0.1/": false,
	} {
		u, err := ParseURL(text)
		if err != nil || Loopback(u) != want {
			t.Errorf("Loopback(%s) = %v, %v", text, !want, err)
		}
	}
}
