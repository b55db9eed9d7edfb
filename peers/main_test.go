package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// roles are what this test binary can be instead of a test, by its first argument.
var roles = map[string]func(args []string) int{
	"tap":      tap,
	"goclient": goClient,
	"goserver": goServer,
	"changing": changing,

	"guardedclient": guardedClient,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role := roles[os.Args[1]]; role != nil {
			os.Exit(role(os.Args[2:]))
		}
	}
	os.Exit(tests(m))
}

// guard is the program under test, and fixtures a server on the same core for the conformance suite, built for this run.
var guard, fixtures string

func tests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	guard, fixtures = filepath.Join(dir, "rootbound"), filepath.Join(dir, "everything")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", dir, "./cmd/rootbound", "./internal/mcptest/everything")
	build.Dir, build.Stderr = "..", os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "building the guard: %v\n", err)
		return 1
	}
	buildMCPGo = sync.OnceValue(func() error {
		out, err := exec.Command("go", "build", "-o", dir, "./mcpgo").CombinedOutput()
		if err != nil {
			return fmt.Errorf("building the peers on mcp-go: %w\n%s", err, out)
		}
		return nil
	})
	mcpgo = filepath.Join(dir, "mcpgo")
	defer func() { endChromium() }()
	return m.Run()
}

// mcpgo are the client and the server on mcp-go, as soon as buildMCPGo has built them.
var (
	mcpgo      string
	buildMCPGo func() error
)

// needMCPGo builds them for a test.
func needMCPGo(t *testing.T) {
	t.Helper()
	if err := buildMCPGo(); err != nil {
		t.Fatal(err)
	}
}

// self is the command line of this test binary in a role.
func self(role string, args ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{exe, role}, args...)
}

// needNode skips a test whose peers are not installed; in CI it fails instead.
func needNode(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat("node_modules/.package-lock.json")
	}
	if err != nil {
		missing(t, "finding the peers (run .ci/peers): "+err.Error())
	}
}

// missing skips a test for which a peer is not there; in CI it fails instead.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("ROOTBOUND_PEERS") == "require" {
		t.Fatal(why)
	}
	t.Skip("left out: " + why)
}
