package peers

import (
	"os"
	"os/exec"
	"testing"
)

// onStdio is the URL of a shim in front of a guard on stdio.
func onStdio(t *testing.T, server ...string) string {
	t.Helper()
	dir := workspace(t)
	env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	url, end, err := serveShim(func() *exec.Cmd {
		args := append([]string{"run", "--preset", "boundary", "--client-roots", "ignore", "--root", dir, "--"}, server...)
		cmd := exec.Command(guard, args...)
		cmd.Env = env
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return url
}

// TestServersOnStdioConform holds the guard to the suite where both its sides are stdio, by a shim, since the suite speaks HTTP only: in front
// of our core and of the Go SDK's server, and between eras.
func TestServersOnStdioConform(t *testing.T) {
	needSuite(t)
	server := everything(t, "server")
	for _, revision := range revisions {
		other := map[string]string{"2025-11-25": "modern", "2026-07-28": "legacy"}[revision]
		for name, command := range map[string][]string{
			"core": {fixtures}, "guarded": {server}, "bridged": {fixtures, "-era", other},
		} {
			t.Run(revision+"/"+name, func(t *testing.T) {
				t.Parallel()
				v := run(t, revision, "server", "--url", onStdio(t, command...))
				// Of all three nothing more is expected than of our core over HTTP.
				hold(t, "stdio-"+name+"-"+revision, v, always, "stdio-"+revision, "core-"+revision)
			})
		}
	}
}
