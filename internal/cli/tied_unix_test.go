//go:build unix

package cli

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What was started by a program that is killed ends with it, and so does its server, though the client is still there.
func TestTied(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	server, logs := filepath.Join(home, "peer"), filepath.Join(home, "logs")
	if err := os.Symlink(self, server); err != nil {
		t.Fatal(err)
	}
	held, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{
		Path: self, Args: []string{"rootbound", tied, "run", "--preset", "boundary", "--root", t.TempDir(), "--log", logs, "--", server},
		Env:        append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME="),
		ExtraFiles: []*os.File{held}, Stderr: os.Stderr,
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held.Close()
	io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},`+
		`"clientInfo":{"name":"client","version":"1"}}}`+"\n")
	answers := bufio.NewReader(stdout)
	if answer, err := answers.ReadString('\n'); err != nil || !strings.Contains(answer, "protocolVersion") {
		t.Fatalf("the server answered %q, %v", answer, err)
	}

	ours.Close() // as the system does for a program that was killed
	if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
		t.Errorf("then came %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("rootbound ended with %v", err)
	}
	log := readAll(t, logs)
	if !strings.Contains(log, errStarterGone.Error()) {
		t.Errorf("the log does not say why it ended:\n%s", log)
	}
}

// The help and everything else is reached through the argument as without it.
func TestTiedArguments(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	held, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	cmd := &exec.Cmd{Path: self, Args: []string{"rootbound", tied, "version", "extra"}, ExtraFiles: []*os.File{held}}
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(string(out), "hint: write `rootbound version`") {
		t.Errorf("it ended with %d and said %q", code, out)
	}
}

func readAll(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	return text.String()
}
