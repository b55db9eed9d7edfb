package peers

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// registry is one of npm, with one package, which is a server that says what it can do.
type registry struct {
	*httptest.Server
	version string
	more    string // what is in its archives besides
	forged  bool   // the archives are not those that it gives the print of
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
	t.Helper()
	r := &registry{version: "1.0.0"}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		archive := packed(t, map[string]string{
			"package/package.json": fmt.Sprintf(`{"name": %q, "version": %q, "bin": {"tries": "server.js"}, "scripts": {"install": "echo x > /tmp/rootbound-was-here"}}`, registryPackage, r.version),
			"package/server.js":    triesServer + r.more,
		})
		if strings.HasSuffix(q.URL.Path, ".tgz") {
			if r.forged {
				archive = packed(t, map[string]string{"package/package.json": `{"bin": "server.js"}`, "package/server.js": "forged"})
			}
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

// installs is where a server that is fetched is run from: a home of its own, and programs by name.
type installs struct {
	dir, cache string
	root       string
}

// newInstalls makes one in which the programs are found that are named, and those of the system that they need.
func newInstalls(t *testing.T, registry string, programs map[string]string) *installs {
	t.Helper()
	in := &installs{dir: t.TempDir(), root: workspace(t)}
	in.cache = filepath.Join(in.dir, "cache", "rootbound")
	bin := filepath.Join(in.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range programs {
		if to == "" {
			var err error
			if to, err = exec.LookPath(name); err != nil {
				t.Fatal(err)
			}
			if name == "python3" { // not the one that looks for another one
				out, err := exec.Command(to, "-c", "import sys; print(sys.executable)").Output()
				if err != nil {
					t.Fatal(err)
				}
				to = strings.TrimSpace(string(out))
			}
		}
		if err := os.Symlink(to, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/nowhere")
	for name, value := range map[string]string{
		"npm_config_registry": registry + "/", "pnpm_config_registry": registry + "/", "BUN_CONFIG_REGISTRY": registry + "/", "PIP_INDEX_URL": registry + "/simple/",
		"XDG_CACHE_HOME": filepath.Join(in.dir, "cache"), "HOME": t.TempDir(), "ROOTBOUND_SECRET": "secret",
		"PIP_FIND_LINKS": "", "npm_config_fetch_retries": "0", "HTTP_PROXY": "", "HTTPS_PROXY": "", "http_proxy": "", "https_proxy": "",
	} {
		t.Setenv(name, value)
	}
	return in
}

// state is kept from one session to the next.
func (in *installs) command(flags, command []string) []string {
	env, err := exec.LookPath("/usr/bin/env")
	if err != nil {
		panic(err)
	}
	return append([]string{env, "XDG_STATE_HOME=" + filepath.Join(in.dir, "state")}, guardedBy(slices.Concat([]string{"--confine", "--root", in.root}, flags), command)...)
}

// try has a session in which the server tries what it can do, and returns what it says of that.
func (in *installs) try(t *testing.T, flags []string, command ...string) string {
	t.Helper()
	return drive(t, goLegacy, in.command(flags, command), plan{Steps: []step{call("try", args{"path": in.root})}})[0]
}

// refused is what is said where nothing is started.
func (in *installs) refused(t *testing.T, flags []string, command ...string) string {
	t.Helper()
	line := in.command(flags, command)
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%q ended with %v: %s", command, err, out)
	}
	return string(out)
}

func wantTries(t *testing.T, when, got, version string) {
	t.Helper()
	for _, part := range []string{
		`\"version\":\"` + version, `\"inside\":\"yes`, `\"package\":\"EACCES`, `\"outside\":\"EACCES`, `\"environment\":\"none`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s: the server says %s, want %s in it", when, got, part)
		}
	}
}

var (
	withNpm = map[string]string{"npx": "", "npm": "", "node": "", "sh": ""}
	refresh = []string{"--refresh"}
)

// TestConfinedRunners has a server that a runner would fetch each time: it is fetched once, and is then run read-only,
// offline and in the version that it was, until --refresh.
func TestConfinedRunners(t *testing.T) {
	needNode(t)
	needConfinement(t)
	pnpm := abs("node_modules/pnpm/bin/pnpm.mjs") // npm does not let it be run where no script is when it is installed
	if err := os.Chmod(pnpm, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, runner := range []struct {
		name     string
		programs map[string]string
		command  []string
	}{
		{"npx", withNpm, []string{"npx", "-y", registryPackage}},
		{"pnpm dlx, by npm", withNpm, []string{"pnpm", "dlx", registryPackage}},
		{"pnpm dlx", map[string]string{"pnpm": pnpm, "node": "", "sh": ""}, []string{"pnpm", "dlx", registryPackage}},
		{"bunx", map[string]string{"bun": bun, "bunx": bun, "node": ""}, []string{"bunx", registryPackage}},
		{"bunx, without node", map[string]string{"bun": bun, "bunx": bun}, []string{"bunx", registryPackage}},
	} {
		t.Run(runner.name, func(t *testing.T) {
			r := newRegistry(t)
			in := newInstalls(t, r.URL, runner.programs)
			wantTries(t, "the first time", in.try(t, nil, runner.command...), "1.0.0")
			asked := r.asked.Load()
			if asked == 0 {
				t.Error("nothing was fetched")
			}
			r.version = "1.0.1"
			wantTries(t, "the second time", in.try(t, nil, runner.command...), "1.0.0")
			if r.asked.Load() != asked {
				t.Error("the registry was asked again")
			}
			wantTries(t, "with --refresh", in.try(t, refresh, runner.command...), "1.0.1")
			if _, err := os.Stat("/tmp/rootbound-was-here"); err == nil {
				t.Error("a script of the package was run when it was installed")
			}
		})
	}
}

// TestInstalledServersAreHeldToWhatTheyWere has everything that is kept of an installed server changed, and a registry that
// lies: what is not as it was installed is not run.
func TestInstalledServersAreHeldToWhatTheyWere(t *testing.T) {
	needNode(t)
	needConfinement(t)
	r := newRegistry(t)
	in := newInstalls(t, r.URL, withNpm)
	npx := []string{"npx", "-y", registryPackage}
	wantTries(t, "the first time", in.try(t, nil, npx...), "1.0.0")
	of := func(pattern string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(in.dir, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		return found[0]
	}
	installed, known := of("cache/rootbound/npm/*"), of("state/rootbound/installed/npm/*.json")
	for what, change := range map[string]func() error{
		"the program": func() error {
			return os.WriteFile(filepath.Join(installed, "node_modules", registryPackage, "server.js"), []byte("#!/usr/bin/env node\nevil"), 0o755)
		},
		"the lock file": func() error {
			name := filepath.Join(installed, "package-lock.json")
			text, err := os.ReadFile(name)
			return errors.Join(err, os.WriteFile(name, bytes.Replace(text, []byte("sha512-"), []byte("sha512-A"), 1), 0o600))
		},
		"a module that is put beside": func() error {
			return os.WriteFile(filepath.Join(installed, "node_modules", "readline.js"), nil, 0o600)
		},
		"what is known of it":         func() error { return os.WriteFile(known, []byte(`{"version":"1.0.0"}`), 0o600) },
		"that nothing is known of it": func() error { return os.Remove(known) },
		"what is known, to no JSON":   func() error { return os.WriteFile(known, []byte(`{`), 0o600) },
	} {
		kept := t.TempDir()
		for from, to := range map[string]string{installed: "installed", known: "known"} {
			if out, err := exec.Command("/bin/cp", "-a", from, filepath.Join(kept, to)).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if got := in.refused(t, nil, npx...); !strings.Contains(got, "--refresh") || !strings.Contains(got, registryPackage) {
			t.Errorf("with a change of %s: %s", what, got)
		}
		err := errors.Join(os.RemoveAll(installed), os.RemoveAll(known), os.Rename(filepath.Join(kept, "known"), known))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("/bin/cp", "-a", filepath.Join(kept, "installed"), installed).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	wantTries(t, "as it was again", in.try(t, nil, npx...), "1.0.0")

	// The same version with other content.
	r.more = "// more"
	if got := in.refused(t, refresh, npx...); !strings.Contains(got, "the registry has another "+registryPackage+" 1.0.0 than the one that was installed") {
		t.Errorf("another 1.0.0: %s", got)
	}
	wantTries(t, "after another 1.0.0", in.try(t, nil, npx...), "1.0.0")
	// An archive that is not the one whose print the registry gives.
	r.more, r.version, r.forged = "", "1.0.1", true
	if got := in.refused(t, refresh, npx...); !strings.Contains(got, "EINTEGRITY") {
		t.Errorf("a forged archive: %s", got)
	}
	wantTries(t, "after a forged archive", in.try(t, nil, npx...), "1.0.0")
	// What is gone comes back in the version that it was, and not in a newer one.
	r.forged = false
	if err := os.RemoveAll(installed); err != nil {
		t.Fatal(err)
	}
	if got := in.refused(t, nil, npx...); !strings.Contains(got, "1.0.0") { // this registry has only its newest version
		t.Errorf("when 1.0.0 is gone: %s", got)
	}
	r.version = "1.0.0"
	wantTries(t, "again from the registry", in.try(t, nil, npx...), "1.0.0")
	if left, _ := filepath.Glob(filepath.Join(in.cache, "npm", ".new-*")); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// index is a registry of Python with one package: a server that says what it can do.
type index struct {
	*httptest.Server
	version string
	asked   atomic.Int64
}

const pythonTries = `import json, os, sys

def attempt(f):
    try:
        f()
        return "yes"
    except OSError as e:
        return {13: "EACCES"}.get(e.errno, e.errno)

def main():
    for line in sys.stdin:
        m = json.loads(line)
        if "id" not in m or "method" not in m:
            continue
        result = {}
        if m["method"] == "initialize":
            result = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "tries", "version": "1"}}
        if m["method"] == "tools/list":
            result = {"tools": [{"name": "try", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}]}
        if m["method"] == "tools/call":
            root = m["params"]["arguments"]["path"]
            tries = {
                "version": "VERSION",
                "inside": attempt(lambda: open(root + "/new.txt", "w")),
                "package": attempt(lambda: open(__file__, "a")),
                "outside": attempt(lambda: os.listdir("/")),
                "environment": os.environ.get("ROOTBOUND_SECRET", "none"),
            }
            result = {"content": [{"type": "text", "text": json.dumps(tries, separators=(",", ":"))}]}
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
`

func newIndex(t *testing.T) *index {
	t.Helper()
	x := &index{version: "1.0.0"}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		x.asked.Add(1)
		info := "rootbound_tries-" + x.version + ".dist-info/"
		files := map[string]string{
			"rootbound_tries/__init__.py": strings.ReplaceAll(pythonTries, "VERSION", x.version),
			info + "METADATA":             "Metadata-Version: 2.1\nName: rootbound-tries\nVersion: " + x.version + "\n",
			info + "WHEEL":                "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
			info + "entry_points.txt":     "[console_scripts]\nrootbound-tries = rootbound_tries:main\n",
		}
		record := ""
		for _, name := range slices.Sorted(maps.Keys(files)) {
			sum := sha256.Sum256([]byte(files[name]))
			record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name]))
		}
		files[info+"RECORD"] = record + info + "RECORD,,\n"
		var wheel bytes.Buffer
		z := zip.NewWriter(&wheel)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			f, err := z.Create(name)
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(f, files[name])
		}
		z.Close()
		if strings.HasSuffix(q.URL.Path, ".whl") {
			w.Write(wheel.Bytes())
			return
		}
		sum := sha256.Sum256(wheel.Bytes())
		w.Header().Set("Content-Type", "text/html")
		name := "rootbound_tries-" + x.version + "-py3-none-any.whl"
		fmt.Fprintf(w, `<!DOCTYPE html><a href="/files/%s#sha256=%s">%s</a>`, name, hex.EncodeToString(sum[:]), name)
	}))
	t.Cleanup(x.Close)
	return x
}

// TestConfinedPythonRunners is the same for what uvx and pipx would fetch, installed by pip.
func TestConfinedPythonRunners(t *testing.T) {
	needConfinement(t)
	if err := exec.Command("python3", "-m", "pip", "--version").Run(); err != nil {
		if os.Getenv("ROOTBOUND_PEERS") == "require" {
			t.Fatalf("finding pip: %v", err)
		}
		t.Skipf("left out, there is no pip: %v", err)
	}
	for _, command := range [][]string{
		{"uvx", "rootbound-tries"}, {"uvx", "rootbound-tries@latest"}, {"uv", "tool", "run", "--from", "Rootbound_Tries>=1", "rootbound-tries"}, {"pipx", "run", "rootbound-tries"},
	} {
		t.Run(strings.Join(command, " "), func(t *testing.T) {
			x := newIndex(t)
			programs := map[string]string{"python3": ""}
			ranged := strings.Contains(strings.Join(command, " "), ">=") // which is no version, and is not looked into
			if ranged {
				programs["uv"] = "/bin/true"
			}
			in := newInstalls(t, x.URL, programs)
			if ranged {
				if got := in.refused(t, nil, command...); !strings.Contains(got, "uv fetches and installs the server when it is started") {
					t.Errorf("refused with %s", got)
				}
				return
			}
			wantTries(t, "the first time", in.try(t, nil, command...), "1.0.0")
			asked := x.asked.Load()
			x.version = "1.0.1"
			wantTries(t, "the second time", in.try(t, nil, command...), "1.0.0")
			if asked == 0 || x.asked.Load() != asked {
				t.Errorf("the index was asked %d times, and then %d times", asked, x.asked.Load())
			}
			wantTries(t, "with --refresh", in.try(t, refresh, command...), "1.0.1")
			var changed error
			filepath.WalkDir(in.cache, func(path string, d fs.DirEntry, err error) error {
				if filepath.Base(path) == "__init__.py" {
					changed = os.WriteFile(path, []byte("def main(): pass"), 0o600)
				}
				return err
			})
			if changed != nil {
				t.Fatal(changed)
			}
			if got := in.refused(t, nil, command...); !strings.Contains(got, "it is not as it was installed") {
				t.Errorf("after a change: %s", got)
			}
		})
	}
}
