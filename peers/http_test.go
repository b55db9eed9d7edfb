package peers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// listening is a guard that serves over HTTP.
type listening struct {
	url  string
	cmd  *exec.Cmd
	said *bytes.Buffer // on its standard error; not before it has ended
	read sync.WaitGroup
}

var listensOn = regexp.MustCompile(`listening on (http://\S+)`)

// listen starts a guard with --listen, and ends it with the test. It must end by itself then, without an error.
func listen(t *testing.T, args ...string) *listening {
	t.Helper()
	return serve(t, append([]string{guard}, args...)...)
}

// serve is listen for any server that says where it listens.
func serve(t *testing.T, command ...string) *listening {
	t.Helper()
	l := &listening{said: new(bytes.Buffer)}
	l.cmd = exec.Command(command[0], command[1:]...)
	l.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	stderr, err := l.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := make(chan string, 1)
	l.read.Go(func() {
		lines := bufio.NewScanner(io.TeeReader(stderr, l.said))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if m := listensOn.FindStringSubmatch(lines.Text()); m != nil {
				url <- m[1]
			}
		}
		close(url)
	})
	t.Cleanup(func() {
		l.cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(patience, func() { l.cmd.Process.Kill() })
		defer late.Stop()
		l.read.Wait()
		if err := l.cmd.Wait(); err != nil {
			t.Errorf("the server ended: %v", err)
		}
		if t.Failed() {
			t.Logf("the server said: %s", l.said.String())
		}
	})
	if l.url = <-url; l.url == "" {
		t.Fatalf("%s does not listen", command[0])
	}
	return l
}

// TestClientsOverHTTP drives each client on servers behind a guard that listens, and on the same servers without a guard, on
// stdio. It must have the same results. Two clients of each kind do so at once.
func TestClientsOverHTTP(t *testing.T) {
	for _, server := range []struct {
		peer
		plan    func(dir string) (plan, []string)
		clients []peer
	}{
		{tsFilesystem, filesystemPlan, []peer{tsLegacy, goLegacy, tsAuto, goModern}},
		{tsEverything, everythingPlan, []peer{tsLegacy, goLegacy}},
		{tsServer, toolsPlan, []peer{tsLegacy, goLegacy, tsAuto, tsPinned, goModern}},
		{goServerPeer, oneRoundPlan, []peer{tsLegacy, goLegacy, tsAuto, tsPinned, goModern}},
	} {
		for _, client := range server.clients {
			t.Run(client.name+"/"+server.name, func(t *testing.T) {
				t.Parallel()
				if client.node || server.node {
					needNode(t)
				}
				dir := workspace(t)
				p, args := server.plan(dir)
				if client.name == goModern.name { // its SDK sends what this era took out, which only some servers on stdio pass over
					p.Steps = slices.DeleteFunc(p.Steps, func(s step) bool { return s.Do == "level" })
				}
				command := append(slices.Clone(server.command), args...)
				direct := drive(t, client, command, p)
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				fill(t, dir)
				l := listen(t, slices.Concat([]string{"run", "--preset", "boundary", "--listen", "127.0.0.1:0", "--root", dir, "--"}, command)...)
				guarded := drive(t, client, []string{l.url}, p)
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

// TestFilesystemServerOverHTTP drives each client on the filesystem server, on stdio and over HTTP, with the same results.
func TestFilesystemServerOverHTTP(t *testing.T) {
	for _, client := range []peer{tsLegacy, tsAuto, tsPinned, goLegacy, goModern} {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			if client.node {
				needNode(t)
			}
			dir := workspace(t)
			p, _ := filesystemPlan(dir)
			direct := drive(t, client, []string{guard, "fs", "--preset", "boundary", dir}, p)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			fill(t, dir)
			l := listen(t, "fs", "--preset", "boundary", "--listen", "127.0.0.1:0", dir)
			for i, line := range drive(t, client, []string{l.url}, p) {
				if line != direct[i] {
					t.Errorf("step %d (%s %s)\nover HTTP %.2000s\non stdio  %.2000s", i, p.Steps[i].Do, p.Steps[i].Tool, line, direct[i])
				}
			}
		})
	}
}

// errorless is a printed step without the text of its error.
func errorless(t *testing.T, line string) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatal(err)
	}
	if v["error"] != nil {
		v["error"] = true
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestManyClientsOfOneServer drives clients of both eras at once on one guard: no answer may become that of another client.
func TestManyClientsOfOneServer(t *testing.T) {
	needNode(t)
	dir := workspace(t)
	l := listen(t, slices.Concat([]string{"run", "--preset", "boundary", "--listen", "127.0.0.1:0", "--root", dir, "--"}, tsServer.command)...)
	var wg sync.WaitGroup
	for i := range 8 {
		client := []peer{tsLegacy, goModern, tsPinned, goLegacy}[i%4]
		wg.Go(func() {
			parallel := step{Do: "parallel"}
			for n := range 30 {
				parallel.Steps = append(parallel.Steps, call("echo", args{"text": fmt.Sprintf("client %d says %d", i, n)}))
			}
			p := plan{Roots: []string{dir}, Content: map[string]any{"name": fmt.Sprint("Ada ", i)}, Steps: []step{parallel, call("two_rounds", nil), parallel}}
			for at, line := range drive(t, client, []string{l.url}, p) {
				if at == 1 {
					if !strings.Contains(line, fmt.Sprint("Ada ", i)) || !strings.Contains(line, dir) {
						t.Errorf("client %d got %s", i, line)
					}
					continue
				}
				for n := range 30 {
					if !strings.Contains(line, fmt.Sprintf("client %d says %d\"", i, n)) {
						t.Errorf("client %d did not hear what it said: %.300s", i, line)
					}
				}
			}
		})
	}
	wg.Wait()
}
