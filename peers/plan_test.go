package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/peers/script"
)

type (
	plan = script.Plan
	step = script.Step
)

type args = map[string]any

func call(tool string, a args) step { return step{Do: "call", Tool: tool, Arguments: a} }

// A peer is a client or a server: how it is called in test names, and the command that runs it.
type peer struct {
	name    string
	command []string
	node    bool
}

// patience is how long one run of a client may take.
const patience = time.Minute

// drive runs a client on a server and returns what the client printed, a line for each step.
func drive(t *testing.T, client peer, server []string, p plan) []string {
	t.Helper()
	in, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, client.command[0], append(client.command[1:len(client.command):len(client.command)], server...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	out := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
	if err != nil || len(out) != len(p.Steps) {
		t.Fatalf("the client did %d of %d steps: %v\n%s\nlast: %s", len(out), len(p.Steps), err, stderr.String(), out[len(out)-1])
	}
	return out
}
