package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// balanced are two guards behind one address, which get the requests in turn.
func balanced(t *testing.T, args func(i int) []string) string {
	t.Helper()
	var guards [2]*url.URL
	for i := range guards {
		u, err := url.Parse(listen(t, args(i)...).url)
		if err != nil {
			t.Fatal(err)
		}
		guards[i] = &url.URL{Scheme: u.Scheme, Host: u.Host}
	}
	var n atomic.Int64
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(guards[n.Add(1)%2])
	}})
	t.Cleanup(balancer.Close)
	return balancer.URL + "/mcp"
}

// calls are how many calls of a tool came to a server behind a tap.
func calls(t *testing.T, recorded, tool string) (n int) {
	t.Helper()
	for _, start := range readRecording(t, recorded) {
		for _, m := range parse(t, start.in) {
			if m.Method == "tools/call" && strings.Contains(m.text, fmt.Sprintf(`"name":%q`, tool)) {
				n++
			}
		}
	}
	return n
}

// TestGuardsBehindOneAddress has each try of a call come to another guard than the one before. With one key of request states they are
// one guard to a client that answers the server's questions; without, what a guard holds for the retry is nothing to the other.
func TestGuardsBehindOneAddress(t *testing.T) {
	for _, client := range []peer{goModern, tsPinned} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/keyed=%v", client.name, keyed), func(t *testing.T) {
				t.Parallel()
				if client.node {
					needNode(t)
				}
				dir, key := workspace(t), filepath.Join(t.TempDir(), "key")
				endpoint := balanced(t, func(int) []string {
					args := []string{"run", "--preset", "boundary", "--ask", "client", "--listen", "127.0.0.1:0", "--root", dir}
					if keyed {
						args = append(args, "--state-key-file", key)
					}
					return append(append(args, "--"), goModernOnly.command...)
				})
				p := plan{Roots: []string{dir}, Content: map[string]any{"name": "Ada"}}
				for range 4 {
					p.Steps = append(p.Steps, call("two_rounds", nil), call("at_once", nil), call("need_roots", nil))
				}
				for i, line := range drive(t, client, []string{endpoint}, p) {
					want := []string{"two file://" + dir + " accept Ada", "one file://" + dir + " Ada", "file://" + dir}[i%3]
					if !keyed && i%3 < 2 { // what the guard holds beside the question that its client gets, or the state that the server gave
						want = "the request state is not valid"
					}
					if !strings.Contains(line, want) {
						t.Errorf("step %d (%s) gave %s, want %s", i, p.Steps[i].Tool, line, want)
					}
				}
				if info, err := os.Stat(key); keyed && (err != nil || info.Mode().Perm() != 0o600) {
					t.Errorf("the key: %v, %v", info, err)
				}
			})
		}
	}
}

// TestAnotherGuardAsksAgain has a yes come to the guard that did not ask: it asks itself, and nothing is done. A yes that comes to the
// guard that asked is good once.
func TestAnotherGuardAsksAgain(t *testing.T) {
	dir, key := workspace(t), filepath.Join(t.TempDir(), "key")
	recorded := []string{t.TempDir(), t.TempDir()}
	var guards []string
	for i := range recorded {
		l := listen(t, append([]string{"run", "--preset", "cautious", "--ask", "always", "--listen", "127.0.0.1:0", "--root", dir, "--state-key-file", key, "--"},
			tapped(recorded[i], goModernOnly.command)...)...)
		guards = append(guards, l.url)
	}
	state := ""
	try := func(guard int, answer string) (text string) {
		t.Helper()
		params := `{"name":"echo","arguments":{"text":"done"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
		if state != "" {
			params += fmt.Sprintf(`,"requestState":%q,"inputResponses":{"rootbound.approve":%s}`, state, answer)
		}
		body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}}`)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, guards[guard], bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo",
		} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ Result struct{ RequestState string } }
		if json.Unmarshal(b, &m) == nil && m.Result.RequestState != "" {
			state = m.Result.RequestState
		}
		return string(b)
	}
	const yes = `{"action":"accept","content":{"decision":"allow once"}}`
	for i := range 6 {
		if got := try(i%2, yes); !strings.Contains(got, "rootbound.approve") {
			t.Fatalf("try %d did not ask: %s", i, got)
		}
	}
	for i := range recorded {
		if n := calls(t, recorded[i], "echo"); n != 0 {
			t.Errorf("the server of guard %d was called %d times without a yes", i, n)
		}
	}
	used := state
	if got := try(1, yes); !strings.Contains(got, `"text":"done"`) {
		t.Errorf("with a yes to the guard that asked last: %s", got)
	}
	state = used
	if got := try(1, yes); !strings.Contains(got, "the request state is not valid") {
		t.Errorf("the same yes again: %s", got)
	}
	if n := calls(t, recorded[0], "echo") + calls(t, recorded[1], "echo"); n != 1 {
		t.Errorf("the servers were called %d times, want 1", n)
	}
}
