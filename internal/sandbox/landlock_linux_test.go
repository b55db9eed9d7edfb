//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

// A restriction cannot be lifted, so what it does is tried in a copy of the test program: it restricts itself by the rules
// that the variable holds, and then does on every thread what its arguments say.
const rulesVariable = "ROOTBOUND_TEST_RULES"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Argument {
		fmt.Fprintln(os.Stderr, asStage())
		os.Exit(126)
	}
	if text := os.Getenv(guardVariable); text != "" {
		os.Exit(asGuard(text))
	}
	if rules := os.Getenv(rulesVariable); rules != "" {
		os.Exit(confined(rules, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// confined prints for each attempt "yes", "denied", or what else went wrong.
func confined(text string, attempts []string) int {
	var rules []Rule
	if err := json.Unmarshal([]byte(text), &rules); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	// Threads that were there before are restricted too.
	const threads = 8
	var ready, done sync.WaitGroup
	restricted := make(chan struct{})
	results := make([][]string, threads)
	for i := range threads {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-restricted
			if i > 0 { // one does what changes something, all read
				for _, a := range attempts {
					if path, read := strings.CutPrefix(a, "read "); read {
						results[i] = append(results[i], a+": "+outcome(try("read", path)))
					}
				}
				return
			}
			for _, a := range attempts {
				op, arg, _ := strings.Cut(a, " ")
				results[i] = append(results[i], a+": "+outcome(try(op, arg)))
			}
		})
	}
	ready.Wait()
	level, err := Restrict(rules)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	close(restricted)
	done.Wait()
	fmt.Println(level)
	for _, line := range results[0] {
		fmt.Println(line)
	}
	for i := 1; i < threads; i++ {
		for _, line := range results[i] {
			if !strings.Contains("\n"+strings.Join(results[0], "\n")+"\n", "\n"+line+"\n") {
				fmt.Printf("another thread: %s\n", line)
			}
		}
	}
	return 0
}

func outcome(err error) string {
	var system *fs.PathError
	var link *os.LinkError
	switch {
	case err == nil:
		return "yes"
	case errors.Is(err, fs.ErrPermission):
		return "denied"
	case errors.As(err, &system):
		return system.Err.Error()
	case errors.As(err, &link):
		return link.Err.Error()
	}
	return err.Error()
}

func try(op, arg string) error {
	switch op {
	case "read":
		_, err := os.ReadFile(arg)
		return err
	case "list":
		_, err := os.ReadDir(arg)
		return err
	case "write":
		f, err := os.OpenFile(arg, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	case "truncate":
		return os.Truncate(arg, 0)
	case "create":
		return os.WriteFile(arg, nil, 0o600)
	case "mkdir":
		return os.Mkdir(arg, 0o700)
	case "remove":
		return os.Remove(arg)
	case "rename":
		from, to, _ := strings.Cut(arg, ",")
		return os.Rename(from, to)
	case "run":
		return exec.Command(arg).Run()
	case "connect":
		c, err := net.Dial("tcp", arg)
		if err != nil {
			return err
		}
		return c.Close()
	case "stat":
		_, err := os.Stat(arg)
		return err
	}
	return errors.New("unknown")
}

// tryConfined returns what became of the attempts, with the names of the test's directory taken out.
func tryConfined(t *testing.T, top string, rules []Rule, attempts ...string) []string {
	t.Helper()
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], attempts...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", rulesVariable+"="+string(text))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(out), top+"/", "")), "\n")
	if want := "confined by the kernel (Landlock "; !strings.HasPrefix(lines[0], want) {
		t.Errorf("the level is %q, want %q", lines[0], want+"N)")
	}
	return lines[1:]
}

func needLandlock(t *testing.T) {
	t.Helper()
	if _, err := Supported(); err != nil {
		t.Skip(err)
	}
}

func TestOnlyWhatTheRulesAllow(t *testing.T) {
	needLandlock(t)
	top := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ro/file", "rw/file", "rw/sub/file", "rw/gone", "keep/file", "keep/sub/file", "out/file", "out/one", "out/other", "cut/file"} {
		write(name, "x")
	}
	write("rw/program", "#!/bin/true\n")
	for _, dir := range []string{"keep/empty", "rw/empty"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"rw/link": "../out/file", "rw/away": "../out/file", "ro/link": "file"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := func(name string) string { return filepath.Join(top, name) }
	var attempts, want []string
	expect := func(result, op string, names ...string) {
		for i, name := range names {
			names[i] = at(name)
		}
		attempts = append(attempts, op+" "+strings.Join(names, ","))
		want = append(want, strings.ReplaceAll(attempts[len(attempts)-1], top+"/", "")+": "+result)
	}
	expect("yes", "read", "ro/file")
	expect("yes", "read", "ro/link")
	expect("yes", "list", "ro")
	expect("denied", "write", "ro/file")
	expect("denied", "truncate", "ro/file")
	expect("denied", "create", "ro/new")
	expect("denied", "mkdir", "ro/new")
	expect("denied", "remove", "ro/file")
	expect("denied", "rename", "ro/file", "rw/stolen")
	expect("denied", "rename", "rw/file", "ro/put")

	expect("yes", "read", "rw/sub/file")
	expect("yes", "write", "rw/file")
	expect("yes", "truncate", "rw/file")
	expect("yes", "create", "rw/new")
	expect("yes", "rename", "rw/new", "rw/file") // how a file is replaced
	expect("yes", "rename", "rw/file", "rw/sub/moved")
	expect("yes", "rename", "rw/link", "rw/sub/link") // the link and not where it leads
	expect("yes", "mkdir", "rw/made")
	expect("yes", "remove", "rw/made")
	expect("yes", "remove", "rw/gone")
	expect("yes", "remove", "rw/empty")
	expect("denied", "run", "rw/program")
	expect("denied", "read", "rw/away")

	expect("yes", "create", "keep/new")
	expect("yes", "rename", "keep/new", "keep/file")
	expect("denied", "remove", "keep/empty")

	expect("denied", "read", "out/file")
	expect("denied", "list", "out")
	expect("denied", "create", "out/new")
	expect("denied", "truncate", "out/file")
	expect("denied", "remove", "out/file")
	expect("yes", "read", "out/one")
	expect("denied", "write", "out/one")
	expect("yes", "write", "out/other")
	expect("denied", "read", "cut/file")
	expect("yes", "stat", "out/file") // see Limits

	rules := []Rule{
		{Path: at("ro"), Access: roots.ReadOnly},
		{Path: at("rw"), Access: roots.ReadWrite},
		{Path: at("keep"), Access: roots.Read | roots.Write},
		{Path: at("out/one"), Access: roots.Read},
		{Path: at("out/other"), Access: roots.ReadWrite},
		{Path: at("cut")},
	}
	if diff := cmp.Diff(want, tryConfined(t, top, rules, attempts...)); diff != "" {
		t.Errorf("what is possible (-want +got):\n%s", diff)
	}

	level, _ := Supported()
	connect := "yes"
	if level.Landlock >= 4 {
		connect = "denied"
	}
	got := tryConfined(t, top, nil, "connect "+l.Addr().String(), "read "+at("ro/file"))
	if diff := cmp.Diff([]string{"connect " + l.Addr().String() + ": " + connect, "read ro/file: denied"}, got); diff != "" {
		t.Errorf("without a rule (-want +got):\n%s", diff)
	}
}

// A rule that cannot be had is an error, and the process is not restricted by half.
func TestAllOrNothing(t *testing.T) {
	needLandlock(t)
	missing := filepath.Join(t.TempDir(), "missing")
	level, err := Restrict([]Rule{{Path: t.TempDir(), Access: roots.ReadOnly}, {Path: missing, Access: roots.ReadOnly}})
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) || level.Enforced() {
		t.Errorf("level %v, error %v, want one that names what is missing", level, err)
	}
	if _, err := os.ReadDir("/"); err != nil {
		t.Errorf("the process is restricted all the same: %v", err)
	}
}
