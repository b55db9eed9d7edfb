package peers

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

func init() { roles["cut"] = cut }

// cut runs a command between its own standard streams, and ends it when so many bytes have come from it, or to it: its arguments are
// "in" or "out", the number, a file that is there once that was done, and the command. A start after that is not cut.
func cut(args []string) int {
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cut:", err)
		return 2
	}
	if _, err := os.Stat(args[2]); err == nil {
		n = 1 << 40
	}
	cmd := exec.Command(args[3], args[4:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 2
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return 2
	}
	in, out := io.Reader(os.Stdin), io.Reader(stdout)
	over := make(chan struct{}, 2)
	if args[0] == "in" {
		in = io.LimitReader(in, n)
	} else {
		out = io.LimitReader(out, n)
	}
	go func() {
		io.Copy(stdin, in)
		stdin.Close()
		over <- struct{}{}
	}()
	go func() {
		io.Copy(os.Stdout, out)
		over <- struct{}{}
	}()
	<-over
	os.WriteFile(args[2], nil, 0o600)
	cmd.Process.Kill()
	cmd.Wait()
	return 1
}

// TestServersThatAreCutOff has a server's process end behind some bytes that it was sent, or has sent. What its client is answered is right, or an
// error; what is asked of a stateless server later is answered by another process, and no call comes to two of them.
func TestServersThatAreCutOff(t *testing.T) {
	for _, client := range []peer{goLegacy, goModern} {
		for _, way := range []string{"in", "out"} {
			for _, at := range []int{900, 1200, 1500, 1777, 2048} {
				t.Run(fmt.Sprintf("%s/%s/%d", client.name, way, at), func(t *testing.T) {
					t.Parallel()
					dir, recorded := workspace(t), t.TempDir()
					p := plan{Roots: []string{dir}, Content: map[string]any{"name": "Ada"}}
					for i := range 6 {
						p.Steps = append(p.Steps, call("echo", args{"text": fmt.Sprintf("number %d", i)}))
					}
					server := self("cut", append([]string{way, fmt.Sprint(at), t.TempDir() + "/cut"}, tapped(recorded, self("goserver"))...)...)
					for i, line := range drive(t, client, guardedBy([]string{"--root", dir}, server), p) {
						if strings.Contains(line, `"result"`) && !strings.Contains(line, fmt.Sprintf(`"text":"number %d"`, i)) {
							t.Errorf("call %d was answered %s", i, line)
						}
						if !strings.Contains(line, `"result"`) && !strings.Contains(line, `"error"`) {
							t.Errorf("call %d was not answered: %s", i, line)
						}
						n := 0
						for _, start := range readRecording(t, recorded) {
							n += strings.Count(string(start.in), fmt.Sprintf(`"number %d"`, i))
						}
						if n > 1 {
							t.Errorf("call %d came to the server %d times", i, n)
						}
					}
				})
			}
		}
	}
}
