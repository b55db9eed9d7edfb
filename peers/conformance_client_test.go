package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGuardedClientsConform holds the Go SDK's client with a guard between it and the suite's servers to what the suite finds without
// one. In front of a server that wants a login, it is the guard that logs in.
func TestGuardedClientsConform(t *testing.T) {
	needSuite(t)
	client := everything(t, "client")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			direct := run(t, revision, "client", "--command", client)
			t.Logf("without the guard: %s", direct)
			for _, way := range []string{"http", "stdio"} {
				t.Run(way, func(t *testing.T) {
					guarded := run(t, revision, "client", "--command", strings.Join(self("guardedclient", way, guard, workspace(t), client), " "))
					for name := range direct.worst {
						if _, ok := guarded.worst[name]; !ok {
							guarded.worst[name] = check{ID: name, Status: "NOTHING", Error: "is checked without the guard only"}
						}
					}
					hold(t, "client-"+revision, guarded, func(name string) bool {
						c, ok := direct.worst[name]
						return !ok || c.Status == "SUCCESS"
					})
				})
			}
		})
	}
}

// guardedClient runs a client of the suite on a guard in front of the suite's server: its arguments are "http" for a guard that listens
// or "stdio" for one behind a shim, the guard, a directory, the client, and the URL of the server.
func guardedClient(args []string) int {
	way, guard, root, client, url := args[0], args[1], args[2], args[3], args[len(args)-1]
	state, err := os.MkdirTemp("", "guardedclient")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(state)
	env := append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_CONFIG_HOME="+state)
	auth := strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/")
	login := func() {
		if err := logIn(guard, url, env); err != nil {
			fmt.Fprintln(os.Stderr, err) // the suite may want just that
		}
	}
	if auth {
		login()
	}
	talk := func(to string) int {
		once := func() error {
			inner := exec.Command(client, to)
			inner.Stdout, inner.Stderr = os.Stdout, os.Stderr
			return inner.Run()
		}
		err := once()
		if err != nil && auth { // as a person does whom the guard tells to
			login()
			err = once()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	run := func(more ...string) *exec.Cmd {
		args := []string{"run", "--preset", "boundary", "--client-roots", "ignore", "--root", root}
		cmd := exec.Command(guard, slices.Concat(args, more, []string{"--url", url})...)
		cmd.Env = env
		return cmd
	}
	if way == "stdio" {
		to, end, err := serveShim(func() *exec.Cmd { return run() })
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer end()
		return talk(to)
	}
	cmd := run("--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		defer late.Stop()
		cmd.Wait()
	}()
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		fmt.Fprintln(os.Stderr, lines.Text())
		if m := listensOn.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(os.Stderr, stderr)
			return talk(m[1])
		}
	}
	fmt.Fprintln(os.Stderr, "the guard does not listen")
	return 1
}

// logIn has the guard log in at the suite's server, and visits the page for it: the suite's says yes at once.
func logIn(guard, url string, env []string) error {
	var known struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if c := os.Getenv("MCP_CONFORMANCE_CONTEXT"); c != "" {
		if err := json.Unmarshal([]byte(c), &known); err != nil {
			return err
		}
	}
	args := []string{"login", "--wait", "10s"}
	if known.ID != "" {
		args = append(args, "--client-id", known.ID)
	}
	if known.Secret != "" {
		args = append(args, "--client-secret", known.Secret)
	}
	cmd := exec.Command(guard, append(args, url)...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if line := lines.Text(); slices.Contains([]string{"http:", "https"}, line[:min(5, len(line))]) {
			go func() {
				if r, err := http.Get(line); err == nil {
					r.Body.Close()
				}
			}()
		}
	}
	return cmd.Wait()
}
