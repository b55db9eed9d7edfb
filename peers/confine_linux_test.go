package peers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
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
	"sync/atomic"
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
	return append([]string{guard, "learn", "--out", profile, "--root", dir, "--"}, command...)
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

// registry is one of npm, with one package, which is a server that says what it can do.
type registry struct {
	*httptest.Server
	version string
	asked   atomic.Int64
}

const registryPackage = "@rootbound-test/server-tries"

const triesServer = `#!/usr/bin/env node
const fs = require('fs')
const attempt = f => { try { f(); return 'yes' } catch (e) { return e.code } }
const tries = root => ({
	version: require('./package.json').version,
	inside: attempt(() => fs.writeFileSync(root + '/new.txt', 'x')),
	package: attempt(() => fs.writeFileSync(__dirname + '/server.js', 'x')),
	outside: attempt(() => fs.readdirSync('/')),
	environment: process.env.ROOTBOUND_SECRET ?? 'none',
})
require('readline').createInterface({ input: process.stdin }).on('line', line => {
	const m = JSON.parse(line)
	if (m.id === undefined || !m.method) return
	const result = {
		initialize: () => ({ protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'tries', version: '1' } }),
		'tools/list': () => ({ tools: [{ name: 'try', inputSchema: { type: 'object', properties: { path: { type: 'string' } } } }] }),
		'tools/call': () => ({ content: [{ type: 'text', text: JSON.stringify(tries(m.params.arguments.path)) }] }),
	}[m.method]?.() ?? {}
	process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: m.id, result }) + '\n')
})
`

func newRegistry(t *testing.T) *registry {
	r := &registry{version: "1.0.0"}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		archive := packed(t, map[string]string{
			"package/package.json": fmt.Sprintf(`{"name": %q, "version": %q, "bin": {"tries": "server.js"}, "scripts": {"install": "echo x > /tmp/rootbound-was-here"}}`, registryPackage, r.version),
			"package/server.js":    triesServer,
		})
		if strings.HasSuffix(q.URL.Path, ".tgz") {
			w.Write(archive)
			return
		}
		sum := sha512.Sum512(archive)
		json.NewEncoder(w).Encode(args{
			"name": registryPackage, "dist-tags": args{"latest": r.version},
			"versions": args{r.version: args{
				"name": registryPackage, "version": r.version, "bin": args{"tries": "server.js"}, "hasInstallScript": true,
				"dist": args{"tarball": r.URL + "/x-" + r.version + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])},
			}},
		})
	}))
	t.Cleanup(r.Close)
	return r
}

func packed(t *testing.T, files map[string]string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			t.Error(err)
		}
		io.WriteString(w, files[name])
	}
	w.Close()
	z.Close()
	return b.Bytes()
}

// TestConfinedNpx has a server that npx would fetch each time: it is fetched once, and is then run read-only, offline and
// in the version that it was, until --refresh.
func TestConfinedNpx(t *testing.T) {
	needNode(t)
	needConfinement(t)
	r := newRegistry(t)
	t.Setenv("npm_config_registry", r.URL+"/")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ROOTBOUND_SECRET", "secret")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "")
	}
	dir := workspace(t)
	session := func(flags ...string) string {
		t.Helper()
		command := guardedBy(append([]string{"--confine", "--root", dir}, flags...), []string{"npx", "-y", registryPackage})
		return drive(t, goLegacy, command, plan{Steps: []step{call("try", args{"path": dir})}})[0]
	}
	want := func(when, got, version string) {
		t.Helper()
		for _, part := range []string{
			`\"version\":\"` + version, `\"inside\":\"yes`, `\"package\":\"EACCES`, `\"outside\":\"EACCES`, `\"environment\":\"none`,
		} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: the server says %s, want %s in it", when, got, part)
			}
		}
	}
	want("the first time", session(), "1.0.0")
	asked := r.asked.Load()
	if asked == 0 {
		t.Error("nothing was fetched")
	}
	r.version = "1.0.1"
	want("the second time", session(), "1.0.0")
	if r.asked.Load() != asked {
		t.Error("the registry was asked again")
	}
	want("with --refresh", session("--refresh"), "1.0.1")
	if _, err := os.Stat("/tmp/rootbound-was-here"); err == nil {
		t.Error("a script of the package was run when it was installed")
	}
}
