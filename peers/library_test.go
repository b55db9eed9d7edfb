package peers

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/gosdk"
	"github.com/rootbound/rootbound/roots"
)

// buildExamples builds the example programs of the library beside the guard.
var buildExamples = sync.OnceValue(func() error {
	build := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Dir(guard), "./examples/...")
	build.Dir = "../gosdk"
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the examples: %w\n%s", err, out)
	}
	return nil
})

// example is the path of an example program.
func example(t *testing.T, name string) string {
	t.Helper()
	if err := buildExamples(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(guard), name)
}

// TestExampleServer drives the library's example server by clients of others: what the operator and the client both allow is
// read, and nothing else, also when the client opens another directory.
func TestExampleServer(t *testing.T) {
	needMCPGo(t)
	server := example(t, "server")
	for _, client := range []peer{
		tsLegacy, tsAuto, tsPinned, goLegacy, goModern,
		{"mcp-go-legacy", []string{mcpgo, "client", "2025-11-25"}, false}, {"mcp-go-modern", []string{mcpgo, "client", ""}, false},
	} {
		for _, way := range []string{"alone", "guarded"} {
			t.Run(client.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				if client.node {
					needNode(t)
				}
				a, b, c := workspace(t), workspace(t), workspace(t)
				command := []string{server, a, b}
				if way == "guarded" {
					command = guardedBy([]string{"--root", a, "--root", b}, command)
				}
				relative := "README.md"
				if way == "guarded" { // a guard takes it from where the server was started, which is the first of its roots
					relative = filepath.Join(b, relative)
				}
				readme := func(dir string) step { return call("read", args{"path": filepath.Join(dir, "README.md")}) }
				const text, refused = `"text":"# A project\n"`, `"isError":true`
				check := func(steps []step, want []string, roots []string) {
					t.Helper()
					for i, line := range drive(t, client, command, plan{Roots: roots, Steps: steps}) {
						// A guard refuses by an error or a result of its own.
						ok := strings.Contains(line, want[i])
						if way == "guarded" && want[i] == refused {
							ok = ok || strings.Contains(line, `"error":`)
						}
						if !ok {
							t.Errorf("step %d (%s %v) gave %s, want %s", i, steps[i].Do, steps[i].Arguments, line, want[i])
						}
					}
				}
				check([]step{
					readme(b), readme(a), readme(c), call("read", args{"path": relative}),
					{Do: "parallel", Steps: slices.Repeat([]step{readme(b)}, 20)},
					{Do: "roots", Roots: []string{a, c}},
					readme(a), readme(b), readme(c),
				}, []string{text, refused, refused, text, text, "", text, refused, refused}, []string{b, c})
				// A client without roots has what the operator allows.
				check([]step{readme(a), readme(b), readme(c)}, []string{text, text, refused}, nil)
			})
		}
	}
}

// TestExampleClient lets the library's example client call servers of others, which ask it for its roots: by itself where they
// have an era in common, and behind a guard in each era that it begins with.
func TestExampleClient(t *testing.T) {
	needNode(t)
	needMCPGo(t)
	client := example(t, "client")
	_, servers := sides()
	type server struct {
		command    []string
		tool, want string
	}
	all := map[string]server{
		"ts-everything": {tsEverything.command, "get-roots-list", "file://%s"},
		"ts-filesystem": {append(slices.Clone(tsFilesystem.command), "%s"), "list_allowed_directories", "%s"},
	}
	for name, s := range servers {
		all[name] = server{s.stdio.command, "need_roots", "file://%s"}
	}
	for name, server := range all {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			for _, way := range []string{"alone", "guarded"} {
				legacy := strings.HasSuffix(name, "-legacy") || name == "ts-everything" || name == "ts-filesystem"
				if way == "alone" && (strings.HasSuffix(name, "-modern") && revision == "2025-11-25" || legacy && revision == "2026-07-28") {
					continue // one of them has only the other era, for which there is the guard
				}
				t.Run(name+"/"+revision+"/"+way, func(t *testing.T) {
					t.Parallel()
					dir := workspace(t)
					command := []string{"-revision", revision}
					if way == "alone" {
						command = append(command, "-unguarded")
					}
					command = append(command, dir, server.tool, "{}")
					for _, arg := range server.command {
						command = append(command, strings.ReplaceAll(arg, "%s", dir))
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					cmd := exec.CommandContext(ctx, client, command...)
					cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(guard)+string(filepath.ListSeparator)+os.Getenv("PATH"),
						"XDG_STATE_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
					var stdout, stderr bytes.Buffer
					cmd.Stdout, cmd.Stderr = &stdout, &stderr
					if err := cmd.Run(); err != nil {
						t.Fatalf("%v\n%s", err, &stderr)
					}
					if want := fmt.Sprintf(server.want, dir); !strings.Contains(stdout.String(), want) {
						t.Errorf("the server says %s, want %s", &stdout, want)
					}
				})
			}
		}
	}
}

// directories are directories resolved, with all rights.
func directories(t *testing.T, paths ...string) []roots.Dir {
	t.Helper()
	var dirs []roots.Dir
	for _, path := range paths {
		d, err := roots.Resolve(path, roots.ResolveOptions{Access: roots.ReadWrite})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	return dirs
}

var libraryInfo = &mcp.Implementation{Name: "peers-library", Version: "1.0.0"}

// TestLibraryClientOverHTTP lets a client on the library answer servers of others over HTTP, in the order of its list.
func TestLibraryClientOverHTTP(t *testing.T) {
	needNode(t)
	needMCPGo(t)
	_, servers := sides()
	for name, server := range servers {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			if (strings.HasSuffix(name, "-modern") || name == "ts-both") && revision == "2025-11-25" {
				continue // they have no era in common, or no session in which a client could be asked
			}
			t.Run(name+"/"+revision, func(t *testing.T) {
				t.Parallel()
				dirs := directories(t, workspace(t), workspace(t))
				list := roots.NewList(roots.NewSet(dirs...))
				url := site(t, "", server.http.command...)
				cs, err := gosdk.NewClient(libraryInfo, nil, list).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				for _, open := range [][]roots.Dir{{dirs[0], dirs[1]}, {dirs[1], dirs[0]}, {dirs[1]}} {
					list.Set(open...)
					want := roots.FileURI(open[0].Path)
					for _, d := range open[1:] {
						want += " " + roots.FileURI(d.Path)
					}
					res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "need_roots", Arguments: struct{}{}})
					if err != nil {
						t.Fatal(err)
					}
					if got := res.Content[0].(*mcp.TextContent).Text; got != want {
						t.Errorf("the server has %s, want %s", got, want)
					}
				}
			})
		}
	}
}

// TestLibraryServerOverHTTP lets clients of others call a server on the library over HTTP, which serves each era by a handler of
// its own. A tool asks for roots, and then twice for a name.
func TestLibraryServerOverHTTP(t *testing.T) {
	needMCPGo(t)
	for _, client := range []peer{
		tsLegacy, tsAuto, tsPinned, goLegacy, goModern,
		{"mcp-go-legacy", []string{mcpgo, "client", "2025-11-25"}, false}, {"mcp-go-modern", []string{mcpgo, "client", ""}, false},
	} {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			if client.node {
				needNode(t)
			}
			a, b := workspace(t), workspace(t)
			server := gosdk.NewServer(libraryInfo, nil, roots.SessionOptions{Configured: roots.NewSet(directories(t, a, b)...)})
			mcp.AddTool(server, &mcp.Tool{Name: "three_rounds"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				state, err := gosdk.Roots(ctx)
				if err != nil {
					return nil, nil, err
				}
				names := strings.Fields(r.Params.RequestState)
				if got, ok := r.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
					names = append(names, fmt.Sprint(got.Content["name"]))
				}
				if len(names) < 2 {
					return &mcp.CallToolResult{RequestState: strings.Join(names, " "), InputRequests: mcp.InputRequestMap{"name": &mcp.ElicitParams{
						Message:         "Who?",
						RequestedSchema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}},
					}}}, nil, nil
				}
				text := strings.Join(names, " and ")
				for _, root := range state.Set.Roots() {
					text += " in " + root.URI
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
			})
			handler := func(stateless bool) http.Handler {
				return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
			}
			sessions, stateless := handler(false), handler(true)
			listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Protocol-Version") >= "2026" {
					stateless.ServeHTTP(w, r)
				} else {
					sessions.ServeHTTP(w, r)
				}
			}))
			t.Cleanup(func() { // a stream of a client that is gone may stay open
				listener.CloseClientConnections()
				listener.Close()
			})
			p := plan{Roots: []string{b}, Content: map[string]any{"name": "Ada"}, Steps: []step{call("three_rounds", nil), call("three_rounds", nil)}}
			for _, line := range drive(t, client, []string{listener.URL}, p) {
				if want := fmt.Sprintf(`"text":"Ada and Ada in file://%s"`, b); !strings.Contains(line, want) {
					t.Errorf("the client has %s, want %s", line, want)
				}
			}
		})
	}
}
