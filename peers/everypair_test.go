package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// pairs says what comes of the tools need_roots and two_rounds for each client, a line, on each server, a column. "right" is what they
// give where client and server are of the same hands and era: the guard's root, what the person answered, and no question asked of
// him twice. On stdio the client starts the guard, and the guard the server; over HTTP it is between the two. Anything else would be
// explained in exceptions.
//
// Without the guard a third of the cells fail: there is no era in common, a server over HTTP without sessions has nobody to ask, a
// question has no params, or the second one comes as a result.
const pairs = `
             ts-legacy  ts-both  ts-modern  go-legacy  go-both  go-modern  mcp-go
ts-legacy    right      right    right      right      right    right      right
ts-auto      right      right    right      right      right    right      right
ts-pinned    right      right    right      right      right    right      right
go-legacy    right      right    right      right      right    right      right
go-modern    right      right    right      right      right    right      right
mcp-go       right      right    right      right      right    right      right
`

// exceptions are why a cell says something else than "right", by LINE/COLUMN. A client that cannot do something at all by itself would be.
var exceptions = map[string]string{}

// sides are the clients and servers of the table, by their name there, the servers on stdio and over HTTP. Each hand's servers are one
// for the handshake revisions, one for both eras and one for the stateless one, as far as it makes such.
func sides() (clients map[string]peer, servers map[string]struct{ stdio, http peer }) {
	mcpgoClient := peer{"mcp-go", []string{mcpgo, "client", ""}, false}
	node := func(args ...string) peer { return peer{"", append([]string{"node"}, args...), true} }
	golang := func(role string, args ...string) peer { return peer{"", self(role, args...), false} }
	clients = map[string]peer{
		"ts-legacy": tsLegacy, "ts-auto": tsAuto, "ts-pinned": tsPinned, "go-legacy": goLegacy, "go-modern": goModern, "mcp-go": mcpgoClient,
	}
	both, legacy := abs("node/server.mjs"), abs("node/server-legacy.mjs")
	servers = map[string]struct{ stdio, http peer }{
		"ts-legacy": {node(legacy), node(legacy, "http")},
		"ts-both":   {node(both), node(both, "http", "both")},
		"ts-modern": {node(both, "modern"), node(both, "http")},
		"go-legacy": {golang("goserver", "legacy"), golang("gohttp")},
		"go-both":   {golang("goserver"), golang("gohttp", "both")},
		"go-modern": {golang("goserver", "modern"), golang("gohttp", "stateless")},
		"mcp-go":    {peer{"", []string{mcpgo, "server"}, false}, peer{"", []string{mcpgo, "server", "http"}, false}},
	}
	return clients, servers
}

// TestEveryClientOnEveryServer holds the guard to the table, each cell on stdio and over HTTP, with a guard of its own.
func TestEveryClientOnEveryServer(t *testing.T) {
	needNode(t)
	needMCPGo(t)
	clients, servers := sides()
	lines := strings.Split(strings.TrimSpace(pairs), "\n")
	columns := strings.Fields(lines[0])
	if len(columns) != len(servers) || len(lines)-1 != len(clients) {
		t.Fatalf("the table has %d servers and %d clients, and there are %d and %d", len(columns), len(lines)-1, len(servers), len(clients))
	}
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		client, ok := clients[cells[0]]
		if !ok || len(cells) != len(columns)+1 {
			t.Fatalf("the line %q is none of the table", line)
		}
		for i, want := range cells[1:] {
			name := cells[0] + "/" + columns[i]
			if (want == "right") != (exceptions[name] == "") {
				t.Errorf("%s is %q, and the reason is %q", name, want, exceptions[name])
			}
			server, ok := servers[columns[i]]
			if !ok {
				t.Fatalf("there is no server %q", columns[i])
			}
			for _, way := range []string{"stdio", "http"} {
				t.Run(name+"/"+way, func(t *testing.T) {
					t.Parallel()
					dir := workspace(t)
					p := plan{Roots: []string{dir}, Content: map[string]any{"name": "Ada"}, Steps: []step{call("need_roots", nil), call("two_rounds", nil)}}
					var through []string
					if way == "stdio" {
						through = guardedBy([]string{"--root", dir}, server.stdio.command)
					} else {
						through = []string{between(t, site(t, "", server.http.command...), dir)}
					}
					got := "right"
					for i, line := range drive(t, client, through, p) {
						text := []string{"file://" + dir, "two file://" + dir + " accept Ada"}[i]
						if !strings.Contains(line, fmt.Sprintf(`"text":%q`, text)) || strings.Contains(line, `"inputRequests"`) {
							got = fmt.Sprintf("%s gave %s", p.Steps[i].Tool, line)
						}
						asked := strings.Count(line, `"method":"elicitation/create"`)
						if asked != i { // each question once, and that for roots is the guard's to answer
							got = fmt.Sprintf("%s asked the client's person %d times: %s", p.Steps[i].Tool, asked, line)
						}
					}
					if got != want {
						t.Errorf("the client has %s, want %s", got, want)
					}
				})
			}
		}
	}
}

// between starts a guard that listens, in front of a server over HTTP, which is let know a directory as one root; it returns its URL.
func between(t *testing.T, url, dir string, flags ...string) string {
	t.Helper()
	command := toURL(t, url, dir, flags...)
	return serve(t, slices.Insert(command, slices.Index(command, "--preset"), "--listen", "127.0.0.1:0")...).url
}
