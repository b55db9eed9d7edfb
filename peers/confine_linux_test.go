package peers

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var pythonServer = peer{"python", []string{"python3", abs("python/server.py")}, false}

func pythonPlan(dir string) (plan, []string) {
	in := func(name string) string { return filepath.Join(dir, name) }
	return plan{Roots: []string{dir}, Steps: []step{
		{Do: "list"},
		call("write", args{"path": in("new.txt"), "text": "早上好"}),
		call("read", args{"path": in("new.txt")}),
		call("read", args{"path": in("nowhere")}),
		call("temporary", nil),
		call("machine", nil),
	}}, nil
}

// TestConfinedSameResults drives servers once as they are, once confined and once watched: their ordinary session comes to
// the same, and what is proposed after watching is nothing but the root.
func TestConfinedSameResults(t *testing.T) {
	needConfinement(t)
	for _, server := range []struct {
		peer
		plan func(dir string) (plan, []string)
	}{
		{tsFilesystem, filesystemPlan},
		{peer{"ts-filesystem-launcher", []string{abs("node_modules/.bin/mcp-server-filesystem")}, true}, filesystemPlan},
		{tsEverything, everythingPlan},
		{tsServer, toolsPlan},
		{goServerPeer, toolsPlan},
		{pythonServer, pythonPlan},
		{peer{"bun", []string{bun, abs("node/server.mjs")}, true}, toolsPlan},
		{peer{"bun-filesystem", append([]string{bun}, tsFilesystem.command[1:]...), true}, filesystemPlan},
		{peer{"deno", []string{deno, "run", "-A", abs("node/server.mjs")}, true}, toolsPlan},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			if server.node {
				needNode(t)
			}
			dir := workspace(t)
			p, args := server.plan(dir)
			command := append(slices.Clone(server.command), args...)
			direct := drive(t, goLegacy, command, p)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			fill(t, dir)
			confined := drive(t, goLegacy, guardedBy([]string{"--confine", "--root", dir}, command), p)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			fill(t, dir)
			profile := filepath.Join(t.TempDir(), "profile.toml")
			watched := drive(t, goLegacy, learned(profile, dir, command), p)
			for i := range direct {
				for how, got := range map[string]string{"confined": confined[i], "watched": watched[i]} {
					if direct[i] != got {
						t.Errorf("step %d (%s %s)\n%s %.2000s\ndirect   %.2000s", i, p.Steps[i].Do, p.Steps[i].Tool, how, got, direct[i])
					}
				}
			}
			if text := proposed(t, profile); !strings.Contains(text, fmt.Sprintf("{ path = %q", dir)) || strings.Contains(npmrc.ReplaceAllString(text, ""), "\nallow_") || strings.Contains(text, "\nnet ") {
				t.Errorf("proposed is\n%s", text)
			}
		})
	}
}

// npmrc matches what is proposed for who has a file .npmrc: Deno looks at it, and does without.
var npmrc = regexp.MustCompile(`\nallow_read = \[\n  "[^"]*/\.npmrc", .*\n\]`)

// Runtimes that npm installs for this machine, whose own starters would have to run a script when they are installed.
var (
	bun  = abs("node_modules/@oven/bun-linux-" + map[string]string{"amd64": "x64", "arm64": "aarch64"}[runtime.GOARCH] + "/bin/bun")
	deno = abs("node_modules/@deno/linux-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH] + "-glibc/deno")
)

// learned is the command of a guard that watches a server.
func learned(profile, dir string, command []string) []string {
	return append([]string{guard, "learn", "--preset", "boundary", "--out", profile, "--root", dir, "--"}, command...)
}

func proposed(t *testing.T, profile string) string {
	t.Helper()
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// needConfinement skips a test where the kernel cannot confine; in CI it fails instead.
func needConfinement(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), guard, "run", "--confine", "--log", "off", "--root", t.TempDir(), "--", "true")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv("ROOTBOUND_PEERS") == "require" || !strings.Contains(string(out), "confining the server, as"):
		t.Fatalf("confining anything: %v\n%s", err, out)
	default:
		t.Skipf("left out: %s", out)
	}
}

// TestConfinedNet has a server reach the one host that it may reach, by the proxy, and nothing else.
func TestConfinedNet(t *testing.T) {
	needConfinement(t)
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "from the web") }))
	t.Cleanup(web.Close)
	host, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	at := args{"host": host, "port": port}
	other := args{"host": "localhost", "port": port}
	steps := []step{call("tunnel", at), call("tunnel", other), call("connect", at), call("connect", other)}
	for _, tt := range []struct {
		net  string
		want []string // part of what each step comes to
	}{
		{host + ":" + port, []string{"from the web", "403 Forbidden", "[Errno 13] Permission denied", "[Errno 13] Permission denied"}},
		{"localhost:" + port, []string{"403 Forbidden", "from the web", "[Errno 13] Permission denied", "[Errno 13] Permission denied"}},
		{"none", []string{"", "", "[Errno 97]", `"isError":true`}},
		{"all", []string{"", "", "connected", "connected"}},
	} {
		run := steps
		if tt.want[0] == "" { // there is no proxy
			run = steps[2:]
		}
		got := drive(t, goLegacy, guardedBy([]string{"--confine", "--net", tt.net, "--root", workspace(t)}, pythonServer.command), plan{Steps: run})
		for i, want := range tt.want[len(steps)-len(run):] {
			if !strings.Contains(got[i], want) {
				t.Errorf("--net %s, %s %v: %s, want %s in it", tt.net, run[i].Tool, run[i].Arguments, got[i], want)
			}
		}
	}
}

// TestLearnNet has a server reach a host by the proxy, and around it: the first can be allowed by name, the second not.
func TestLearnNet(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "from the web") }))
	t.Cleanup(web.Close)
	host, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	for tool, want := range map[string]string{
		"tunnel":  fmt.Sprintf("\nnet = [%q]\n", "localhost:"+port),
		"connect": "\nnet = \"all\"\n",
	} {
		profile := filepath.Join(t.TempDir(), "profile.toml")
		at := args{"host": "localhost", "port": port}
		drive(t, goLegacy, learned(profile, workspace(t), pythonServer.command), plan{Steps: []step{call(tool, at)}})
		text := proposed(t, profile)
		if !strings.Contains(text, want) {
			t.Errorf("%s: proposed is\n%s", tool, text)
		}
		if around := fmt.Sprintf("connects to %s:%s by itself, without asking a proxy", host, port); strings.Contains(text, around) != (tool == "connect") {
			t.Errorf("%s: proposed is\n%s", tool, text)
		}
	}
}
