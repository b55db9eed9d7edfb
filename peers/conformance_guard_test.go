package peers

import (
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// everything is a server or a client that the Go SDK has for the suite, built for a test.
func everything(t *testing.T, which string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir, "github.com/modelcontextprotocol/go-sdk/conformance/everything-"+which).CombinedOutput()
	if err != nil {
		t.Fatalf("building the Go SDK's everything-%s: %v\n%s", which, err, out)
	}
	return filepath.Join(dir, "everything-"+which)
}

// serveEverything starts the Go SDK's server over HTTP, and returns its URL. It has a handler for each era.
func serveEverything(t *testing.T, server, revision string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // it takes no port 0
	cmd := exec.Command(server, "-http", address, "-stateless="+strconv.FormatBool(revision >= "2026"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return "http://" + address
		}
		if time.Since(begun) > patience {
			t.Fatal(err)
		}
	}
}

// boundary are the arguments of a guard that changes nothing but what is in every boundary: it answers itself who asks for roots.
func boundary(t *testing.T, args ...string) []string {
	t.Helper()
	return slices.Concat([]string{"run", "--preset", "boundary", "--client-roots", "ignore", "--root", workspace(t), "--listen", "127.0.0.1:0"}, args)
}

// TestGuardedServersConform holds the Go SDK's server behind the guard to what the suite finds without it: a check that it passes
// must pass with the guard too.
func TestGuardedServersConform(t *testing.T) {
	needSuite(t)
	server := everything(t, "server")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			url := serveEverything(t, server, revision)
			direct := run(t, revision, "server", "--url", url)
			t.Logf("without the guard: %s", direct)
			passes := func(name string) bool {
				c, ok := direct.worst[name]
				return !ok || c.Status == "SUCCESS"
			}
			for way, args := range map[string][]string{"stdio": {"--", server}, "url": {"--url", url}} {
				t.Run(way, func(t *testing.T) {
					guarded := run(t, revision, "server", "--url", listen(t, boundary(t, args...)...).url)
					for name := range direct.worst { // what is not looked at any more does not pass either
						if _, ok := guarded.worst[name]; !ok {
							guarded.worst[name] = check{ID: name, Status: "NOTHING", Error: "is checked without the guard only"}
						}
					}
					hold(t, "guarded-"+revision, guarded, passes)
				})
			}
		})
	}
}

// TestBridgedServersConform holds the guard to the suite where it stands between eras: what the suite asks in the words of one era
// goes to a server that knows only the other, on stdio and over HTTP.
func TestBridgedServersConform(t *testing.T) {
	needSuite(t)
	for _, tt := range []struct{ revision, era, way string }{
		{"2025-11-25", "modern", "stdio"}, {"2025-11-25", "modern", "url"},
		{"2026-07-28", "legacy", "stdio"}, {"2026-07-28", "legacy", "url"},
	} {
		t.Run(tt.revision+"/"+tt.way, func(t *testing.T) {
			t.Parallel()
			guarded := func(t *testing.T) string {
				if tt.way == "stdio" {
					return listen(t, boundary(t, "--", fixtures, "-era", tt.era)...).url
				}
				return listen(t, boundary(t, "--url", serve(t, fixtures, "-era", tt.era, "-listen", "127.0.0.1:0").url)...).url
			}
			v := run(t, tt.revision, "server", "--url", guarded(t))
			if tt.era == "legacy" && tt.way == "stdio" {
				alone(t, v, tt.revision, guarded)
			}
			hold(t, "bridged-"+tt.way+"-"+tt.revision, v, always)
		})
	}
}

// alone runs anew, each on a guard of its own, the scenarios in which servers ask, and puts what they say now in place of what they
// said. Many of them leave questions unanswered: on the one line of a handshake server the next one's could be for either of two
// clients, so it is asked of nobody.
func alone(t *testing.T, v verdicts, revision string, guarded func(t *testing.T) string) {
	t.Helper()
	var mu sync.Mutex
	t.Run("alone", func(t *testing.T) {
		for _, scenario := range required(t, revision, "server") {
			mine := func(name string, _ check) bool { return strings.HasPrefix(name, scenario+":") }
			if !strings.HasPrefix(scenario, "input-required-") {
				continue
			}
			t.Run(scenario, func(t *testing.T) {
				t.Parallel()
				again := runOnly(t, []string{scenario}, "server", "--scenario", scenario, "--spec-version", revision, "--url", guarded(t))
				mu.Lock()
				defer mu.Unlock()
				maps.DeleteFunc(v.worst, mine)
				maps.Copy(v.worst, again.worst)
				maps.Copy(v.count, again.count)
			})
		}
	})
}
