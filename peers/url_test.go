package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func init() { roles["gohttp"] = goHTTP }

// goHTTP is the server of goServer over HTTP: with the argument "stateless" for the stateless era, with "both" for both, else for the
// handshake.
func goHTTP(args []string) int {
	s := goTools(nil)
	handler := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, MaxRequestBodyBytes: 64 << 20, PropagateRequestCancellation: true,
		})
	}
	h := handler(slices.Contains(args, "stateless"))
	if slices.Contains(args, "both") { // it has a handler for each era
		sessions, stateless := h, handler(true)
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Protocol-Version") >= "2026" {
				stateless.ServeHTTP(w, r)
			} else {
				sessions.ServeHTTP(w, r)
			}
		})
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("listening on http://%s/mcp\n", ln.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(ln, h))
	return 1
}

var servesOn = regexp.MustCompile(`(?i)listening on (http://\S+)|(?:listening|running) on port (\d+)`)

// site starts a server over HTTP, and returns its URL. One that is told its port by the environment has path behind it.
func site(t *testing.T, path string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a port that nobody has
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	ln.Close()
	cmd.Env = append(os.Environ(), fmt.Sprint("PORT=", port))
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		w.Close()
		cmd.Wait()
	})
	url := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			if m := servesOn.FindStringSubmatch(lines.Text()); m != nil {
				if m[1] == "" {
					m[1] = fmt.Sprintf("http://127.0.0.1:%s%s", m[2], path)
				}
				select {
				case url <- m[1]:
				default:
				}
			}
		}
		io.Copy(io.Discard, r)
	}()
	select {
	case u := <-url:
		return u
	case <-time.After(patience):
		t.Fatalf("%q does not listen", command)
		return ""
	}
}

// toURL is a guard in front of a server over HTTP, which is let know a directory as one root.
func toURL(t *testing.T, url, dir string, flags ...string) []string {
	t.Helper()
	state := t.TempDir()
	consent, err := json.Marshal(map[string]string{
		"time": "2026-01-01T00:00:00Z", "deed": "allowed", "server": "127.0.0.1", "runs": "url:" + url, "uri": "file://" + dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(state, "rootbound"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "rootbound", "consents.jsonl"), append(consent, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]string{"env", "XDG_STATE_HOME=" + state, guard, "run", "--preset", "boundary", "--root", dir, "--share-roots"}, flags, []string{"--url", url})
}

// TestServersOverHTTP drives each client on servers over HTTP of either era, and of revision 2024-11-05, behind a guard, and on the
// same servers without one on stdio, where the client and the server speak an era in common. It must have the same results.
func TestServersOverHTTP(t *testing.T) {
	// Of a server that is another one for each request nobody hears of changes, and what is added is gone.
	perRequest := func(dir string) (plan, []string) {
		p, args := toolsPlan(dir)
		p.Steps = slices.DeleteFunc(p.Steps, func(s step) bool {
			text, _ := s.Arguments["text"].(string)
			return s.Tool == "add_tool" || s.Tool == "added" || s.Notification == "notifications/tools/list_changed" || len(text) >= 4<<20 // its limit
		})
		return p, args
	}
	// In the way of 2024-11-05 this server has no tools that ask.
	silent := func(dir string) (plan, []string) {
		p, args := everythingPlan(dir)
		asks := []string{"get-roots-list", "trigger-sampling-request", "trigger-elicitation-request", "simulate-research-query"}
		p.Steps = slices.DeleteFunc(p.Steps, func(s step) bool { return s.Do == "list" || slices.Contains(asks, s.Tool) })
		return p, args
	}
	everything := func(transport string) []string {
		return []string{"node", abs("node_modules/@modelcontextprotocol/server-everything/dist/index.js"), transport}
	}
	all := []peer{tsLegacy, goLegacy, tsAuto, tsPinned, goModern}
	for _, server := range []struct {
		name    string
		path    string
		command []string // over HTTP
		stdio   peer
		plan    func(dir string) (plan, []string)
		clients []peer
		flags   []string
	}{
		{"ts-everything", "/mcp", everything("streamableHttp"), tsEverything, everythingPlan, []peer{tsLegacy, goLegacy}, nil},
		{"ts-everything-2024-11-05", "/sse", everything("sse"), tsEverything, silent, []peer{tsLegacy, goLegacy}, nil},
		{"ts-server", "", append(slices.Clone(tsServer.command), "http"), tsServer, perRequest, all, nil},
		{"go-stateful", "", self("gohttp"), goServerPeer, oneRoundPlan, all, nil},
		{"go-stateless", "", self("gohttp", "stateless"), goServerPeer, oneRoundPlan, all, []string{"--server-protocol", "modern"}},
	} {
		for _, client := range server.clients {
			t.Run(client.name+"/"+server.name, func(t *testing.T) {
				t.Parallel()
				if client.node || server.stdio.node {
					needNode(t)
				}
				dir := workspace(t)
				p, args := server.plan(dir)
				if client.name == goModern.name { // its SDK sends what this era took out, which only some servers pass over
					p.Steps = slices.DeleteFunc(p.Steps, func(s step) bool { return s.Do == "level" })
				}
				direct := drive(t, client, append(slices.Clone(server.stdio.command), args...), p)
				guarded := drive(t, client, toURL(t, site(t, server.path, server.command...), dir, server.flags...), p)
				for i := range direct {
					without, with := direct[i], guarded[i]
					if p.Steps[i].Cancel { // each transport has its own words for it
						without, with = errorless(t, without), errorless(t, with)
					}
					if comparable(t, without) != comparable(t, with) {
						t.Errorf("step %d (%s %s)\nguarded %.2000s\ndirect  %.2000s", i, p.Steps[i].Do, p.Steps[i].Tool, guarded[i], direct[i])
					}
				}
			})
		}
	}
}

// A server that forgets its session, as one does that was started again, is spoken to in another one.
func TestASessionOverHTTPIsBegunAgain(t *testing.T) {
	t.Parallel()
	dir := workspace(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := func() http.Handler {
		s := goTools(nil)
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	now := handler()
	calls := 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") != "" && r.Method == http.MethodPost {
			if calls++; calls == 4 {
				now = handler()
			}
		}
		now.ServeHTTP(w, r)
	})}
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })
	p := plan{Roots: []string{dir}}
	for i := range 6 {
		p.Steps = append(p.Steps, call("echo", args{"text": fmt.Sprint(i)}))
	}
	for i, line := range drive(t, goLegacy, toURL(t, fmt.Sprintf("http://%s/mcp", ln.Addr()), dir), p) {
		if !strings.Contains(line, fmt.Sprintf(`"text":"%d"`, i)) {
			t.Errorf("step %d: %s", i, line)
		}
	}
}
