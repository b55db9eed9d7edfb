package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var long = flag.Bool("long", false, "make the release for all platforms, and the second time without what the first left in Go's cache")

// version is that of the release that the tests make.
const version = "1.2.3"

// scratch is where the tests of this run make releases.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "release"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// missing skips a test for which something is not there; in CI it fails instead.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("ROOTBOUND_PEERS") == "require" {
		t.Fatal(why)
	}
	t.Skip("left out: " + why)
}

// made is the release of this checkout with what is not committed, as if all of it were and were tagged. It is made once.
func made(t *testing.T) string {
	t.Helper()
	onHost(t)
	dir, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var once = sync.OnceValues(func() (string, error) { return makeIn("one", nil) })

// onHost leaves out what needs a program that runs here.
func onHost(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		missing(t, "running what is made here: this is not Linux")
	}
}

// makeIn copies the checkout into a directory of a name, commits and tags it there, and makes its release.
func makeIn(name string, progress io.Writer) (string, error) {
	repo := filepath.Join(scratch, name, "checkout")
	out := filepath.Join(repo, "dist") // where it is made if nothing else is said
	if err := copyCheckout(repo); err != nil {
		return "", err
	}
	if progress == nil {
		progress = io.Discard
	}
	r := &release{repo: repo, platforms: wanted(), progress: progress}
	return out, r.make(out)
}

func wanted() []platform {
	if *long {
		return platforms
	}
	return []platform{host}
}

func copyCheckout(to string) error {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing the checkout: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		from, target := filepath.Join("..", name), filepath.Join(to, name)
		info, err := os.Lstat(from)
		if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
			continue // it is deleted and not yet committed
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(target), 0o755)
		}
		if err == nil {
			err = os.WriteFile(target, text, info.Mode().Perm())
		}
		if err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "a release"}, {"tag", "v" + version}} {
		git := exec.Command("git", args...)
		git.Dir = to
		git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		for _, who := range []string{"AUTHOR", "COMMITTER"} {
			git.Env = append(git.Env, "GIT_"+who+"_NAME=somebody", "GIT_"+who+"_EMAIL=somebody@example.test", "GIT_"+who+"_DATE=2026-11-30T12:00:00Z")
		}
		if out, err := git.CombinedOutput(); err != nil {
			return fmt.Errorf("running git %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// read reads a file of the release.
func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// runs runs a program that must end with a code, and returns what it said.
func runs(t *testing.T, code int, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%s %s ended with %d (%v), not with %d:\n%s", name, strings.Join(args, " "), got, err, code, &out)
	}
	return out.String()
}

// demonstrates runs the demo with a program that is installed somewhere, and what it says of itself.
func demonstrates(t *testing.T, env []string, program string) {
	t.Helper()
	env = append(env, "HOME="+t.TempDir(), "XDG_STATE_HOME=", "XDG_CONFIG_HOME=")
	checkDemo(t, runs(t, 0, env, program, "demo"))
	checkVersion(t, runs(t, 0, env, program, "version"))
}

func checkDemo(t *testing.T, out string) {
	t.Helper()
	if line := "a read outside is refused                           ✔               ✔               ✔"; !strings.Contains(out, line) {
		t.Errorf("the demo does not say that it held:\n%s", out)
	}
}

func checkVersion(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(out, "\n")
	if want := fmt.Sprintf("rootbound v%s %s %s", version, host, runtime.Version()); lines[0] != want {
		t.Errorf("the program is %q, want %q", lines[0], want)
	}
	if !strings.HasPrefix(lines[1], "commit ") || !strings.HasSuffix(lines[1], " of 2026-11-30T12:00:00Z") {
		t.Errorf("the program is of %q", lines[1])
	}
}
