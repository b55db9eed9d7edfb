package peers

import (
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
			t.Logf("without the guard: %d checks passed, %d did not", direct.passed, direct.failed)
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
