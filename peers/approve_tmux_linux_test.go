package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// needTmux skips a test where there is no tmux; in CI it fails instead.
func needTmux(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("tmux")
	switch {
	case err == nil:
	case os.Getenv("ROOTBOUND_PEERS") == "require":
		t.Fatalf("finding tmux (install it): %v", err)
	default:
		t.Skipf("left out, install tmux first: %v", err)
	}
}

// screen is a terminal in tmux.
type screen struct {
	t    *testing.T
	name string
}

func newScreen(t *testing.T, command ...string) *screen {
	t.Helper()
	s := &screen{t, filepath.Join(t.TempDir(), "tmux")}
	s.tmux(append([]string{"new-session", "-d", "-x", "110", "-y", "40"}, command...)...)
	t.Cleanup(s.kill)
	return s
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", s.name, "-f", "/dev/null"}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TMUX=") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *screen) kill() {
	exec.Command("tmux", "-S", s.name, "kill-server").Run() // it may be gone
}

// shows waits until a text is on the screen.
func (s *screen) shows(text string) string {
	s.t.Helper()
	for deadline := time.Now().Add(patience / 2); ; time.Sleep(20 * time.Millisecond) {
		got := s.tmux("capture-pane", "-p")
		if strings.Contains(got, text) {
			return got
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("there is no %q on the screen:\n%s", text, got)
		}
	}
}

// TestApprovedInATerminal has clients that cannot ask anybody. A person answers in a terminal: on the whole screen, and when
// that was killed, with a command.
func TestApprovedInATerminal(t *testing.T) {
	needTmux(t)
	for _, client := range []peer{tsLegacy, goLegacy, tsPinned, goModern} {
		t.Run(client.name, func(t *testing.T) {
			if client.node {
				needNode(t)
			}
			run := filepath.Join(t.TempDir(), "run")
			if err := os.Mkdir(run, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("XDG_RUNTIME_DIR", run)
			t.Setenv("CI", "")
			dir := workspace(t)
			write := func(name string) step {
				return call("write_file", args{"path": filepath.Join(dir, name), "content": name + "\n"})
			}
			command := slices.Concat([]string{guard, "fs"}, asking(t, dir)[:4], []string{dir})
			out := make(chan []string, 1)
			go func() {
				out <- drive(t, client, command, plan{Nobody: true, Steps: []step{write("one"), write("two"), write("three")}})
			}()

			s := newScreen(t, guard, "approve")
			s.shows(filepath.Join(dir, "one"))
			s.shows("+one")
			s.shows("2  allow once")
			time.Sleep(600 * time.Millisecond) // a key that comes at once was meant for something else
			s.tmux("send-keys", "2")
			s.shows(filepath.Join(dir, "two"))
			s.tmux("send-keys", "n")
			s.tmux("send-keys", "-l", "not this one")
			s.tmux("send-keys", "Enter")
			s.shows(filepath.Join(dir, "three"))
			s.tmux("send-keys", "Tab") // what runs now, beside the question
			s.shows("opened by handle")
			s.shows("2 in the last minute (1 approved, 1 refused)")
			s.tmux("send-keys", "Tab")
			s.shows("2  allow once")
			s.kill()
			list, err := exec.Command(guard, "approve", "list").Output()
			id, _, _ := strings.Cut(string(list), " ")
			if err != nil || !strings.Contains(string(list), "three") {
				t.Fatalf("the question went with the screen: %v\n%s", err, list)
			}
			if text, err := exec.Command(guard, "approve", id).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}

			got := <-out
			for i, want := range []string{"Successfully wrote", "the user said no, and says: not this one", "Successfully wrote"} {
				if c := readCame(t, got[i]); !strings.Contains(c.text(), want) || len(c.Asked) != 0 {
					t.Errorf("step %d came to %s", i, got[i])
				}
			}
			for name, want := range map[string]bool{"one": true, "two": false, "three": true} {
				if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
