package approval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is also a program that answers a question, for processes that descend from a guard: it writes what came of it
// into a file.
func TestMain(m *testing.M) {
	if dir := os.Getenv("APPROVAL_TEST_DIR"); dir != "" {
		text := "no guard was found"
		cards, _ := readCards(dir, nil)
		for _, c := range cards {
			err := Guard{Server: c.Server, socket: c.Socket, token: c.Token}.Answer(context.Background(), "c1", Reply{Choice: Choice{Allow: true}})
			text = fmt.Sprint(err)
		}
		name := os.Getenv("APPROVAL_TEST_OUT")
		if err := errors.Join(os.WriteFile(name+".part", []byte(text), 0o600), os.Rename(name+".part", name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What descends from a guard does not answer, however it was started: also what left its parents, session and group.
func TestWhatDescendsFromAGuardDoesNotAnswer(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	desk, _ := open(t, dir, "files")
	desk.Ask(t.Context(), Call{Question: Question{ID: "c1"}, Key: "k", Answered: func(a Answer) {
		if a.Allow {
			t.Error("a server answered for its person")
		}
	}})
	for name, script := range map[string]string{
		"a child":             `"$0"`,
		"one that left":       `(setsid "$0" </dev/null >/dev/null 2>&1 &)`,
		"one that left twice": `(setsid sh -c '"$0" & exit' "$0" &)`,
	} {
		out := filepath.Join(t.TempDir(), "out")
		cmd := exec.Command("sh", "-c", script, os.Args[0])
		cmd.Env = append(os.Environ(), "APPROVAL_TEST_DIR="+dir, "APPROVAL_TEST_OUT="+out)
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		text := wait(t, out)
		if !strings.Contains(text, "descends from a guard") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if err := desk.Answer("c1", Reply{}, ByTerminal, ""); err != nil {
		t.Error(err)
	}
}

// wait returns what is in a file as soon as it is there.
func wait(t *testing.T, name string) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if text, err := os.ReadFile(name); err == nil {
			return string(text)
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody came")
		}
	}
}
