package peers

import (
	"os"
	"os/exec"
	"path/filepath"
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

// TestConfinedSameResults drives servers once as they are and once confined: their ordinary session comes to the same.
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
			for i := range direct {
				if direct[i] != confined[i] {
					t.Errorf("step %d (%s %s)\nconfined %.2000s\ndirect   %.2000s", i, p.Steps[i].Do, p.Steps[i].Tool, confined[i], direct[i])
				}
			}
		})
	}
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
