package peers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestDropIn asks the reference filesystem server and ours the same things over the same trees. Each answer, and what a
// call leaves on the disk, is the same, or differs as one of the differences says, and docs/differences.md lists exactly
// these; one that no call shows any more is a failure too.
func TestDropIn(t *testing.T) {
	needNode(t)
	sections := dropInSections()
	modes := []*dropInMode{{name: "reference"}, {name: "default"}, {name: "compat", flags: []string{"--compat"}}}
	var wg sync.WaitGroup
	for _, m := range modes {
		wg.Go(func() { m.err = m.run(t, sections) })
	}
	wg.Wait()
	for _, m := range modes {
		if m.err != nil {
			t.Fatalf("%s: %v", m.name, m.err)
		}
	}

	calls, seen := 0, map[string]map[string]int{}
	for _, m := range modes[1:] {
		seen[m.name] = map[string]int{}
		for i, s := range sections {
			for j, trial := range s.trials {
				calls += len(trial)
				want, got := modes[0].outcomes[i][j], m.outcomes[i][j]
				d := comparison{mode: m.name, disk: diskDifference(want.changes, got.changes)}
				for k, c := range trial {
					d.calls = append(d.calls, c)
					d.want, d.got = append(d.want, want.answers[k]), append(d.got, got.answers[k])
				}
				for _, id := range d.explain(t) {
					seen[m.name][id]++
				}
			}
		}
	}
	t.Logf("%d calls on each server; differences with --compat: %v; without: %v", calls/2, seen["compat"], seen["default"])

	listed := listedDifferences(t)
	for _, d := range differences {
		compat, ok := listed[d.id]
		if !ok {
			t.Errorf("docs/differences.md does not list %s, which is allowed", d.id)
			continue
		}
		delete(listed, d.id)
		if compat == d.defaultOnly {
			t.Errorf("docs/differences.md says of %s that it holds with --compat: %v, and the test: %v", d.id, compat, !d.defaultOnly)
		}
		if seen["default"][d.id] == 0 && !d.rare {
			t.Errorf("no call shows the difference %s", d.id)
		}
		if (seen["compat"][d.id] == 0) != d.defaultOnly && !d.rare {
			t.Errorf("the difference %s was seen %d times with --compat", d.id, seen["compat"][d.id])
		}
	}
	for id := range listed {
		t.Errorf("docs/differences.md lists %s, and no call shows it", id)
	}
}

// listedDifferences reads the ids in docs/differences.md, and whether each holds with --compat too.
func listedDifferences(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^- \*\*([a-z0-9-]+)\*\*( \(default only\))?:`).FindAllStringSubmatch(string(page), -1) {
		if _, twice := listed[m[1]]; twice {
			t.Errorf("docs/differences.md lists %s twice", m[1])
		}
		listed[m[1]] = m[2] == ""
	}
	return listed
}

// section is trials over one kind of tree.
type section struct {
	name   string
	tree   []entry
	trials []trial
	hidden bool // not every change in it can be seen
}

// trial is calls, one after the other, on a tree as it was made.
type trial []toolCall

// toolCall is a call of a tool; with method "tools/list" it is that. $W in the arguments is the directory with the roots.
type toolCall struct {
	tool string
	args string // JSON; "" for none
}

func (c toolCall) String() string { return c.tool + " " + c.args }

// mutates reports whether the calls may change the tree.
func (t trial) mutates() bool {
	return slices.ContainsFunc(t, func(c toolCall) bool {
		return slices.Contains([]string{"write_file", "edit_file", "create_directory", "move_file", "append_file", "copy_file", "delete_path"}, c.tool)
	})
}

// dropInMode is one of the servers that are compared.
type dropInMode struct {
	name     string
	flags    []string
	outcomes [][]trialOutcome // by section and trial
	err      error
}

// trialOutcome is what one trial came to: each answer as text, and what is on the disk in another way than before.
type trialOutcome struct {
	answers []string
	changes map[string]string
}

// run runs all the trials on one server and its own trees.
func (m *dropInMode) run(t *testing.T, sections []section) error {
	top, err := os.MkdirTemp("", "dropin")
	if err != nil {
		return err
	}
	defer removeTree(top)
	top, err = filepath.EvalSymlinks(top)
	if err != nil {
		return err
	}
	w := filepath.Join(top, "w")
	dirs := []string{filepath.Join(w, "R"), filepath.Join(w, "S"), filepath.Join(w, "home", "project")}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	command := append([]string{"node", "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"}, dirs...)
	if m.name != "reference" {
		command = append(append([]string{guard, "fs", "--preset", "boundary", "--log", "off"}, m.flags...), dirs...)
	}
	server, err := startDropIn(t, self("plain", command...), w, top)
	if err != nil {
		return err
	}
	defer server.stop()
	for _, s := range sections {
		if err := clearTree(w, dirs); err != nil {
			return err
		}
		if err := makeTree(w, s.tree); err != nil {
			return fmt.Errorf("making the tree of %s: %w", s.name, err)
		}
		before, err := snapshot(w)
		if err != nil {
			return err
		}
		var outcomes []trialOutcome
		for _, trial := range s.trials {
			o, err := server.attempt(trial, before)
			if err != nil {
				return err
			}
			outcomes = append(outcomes, o)
			if trial.mutates() {
				if err := s.mend(w, dirs, o.changes); err != nil {
					return fmt.Errorf("mending the tree of %s: %w", s.name, err)
				}
			}
		}
		m.outcomes = append(m.outcomes, outcomes)
	}
	return nil
}

// mend makes a tree what it was before a trial.
func (s section) mend(w string, dirs []string, changes map[string]string) error {
	var err error
	if s.hidden {
		err = clearTree(w, dirs)
	}
	for path := range changes {
		err = errors.Join(err, removeTree(filepath.Join(w, path)))
	}
	for _, d := range dirs { // the reference server moves them away when it is asked to
		err = errors.Join(err, os.MkdirAll(d, 0o755))
	}
	return errors.Join(err, makeTree(w, s.tree))
}

// dropInServer is a running server.
type dropInServer struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan []byte
	// places puts names for the directories that differ from server to server.
	places *strings.Replacer
	w      string
	last   int
}

// startDropIn starts a server and shakes hands with it. Its files of state are beneath top.
func startDropIn(t *testing.T, command []string, w, top string) (*dropInServer, error) {
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(w, "home"), "XDG_STATE_HOME="+top, "XDG_CONFIG_HOME="+top, "TZ=UTC", "LC_ALL=en_US.UTF-8")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &dropInServer{cmd: cmd, stdin: stdin, lines: make(chan []byte), places: strings.NewReplacer(w, "$W", top, "$T"), w: w}
	go func() {
		defer close(s.lines)
		for r := bufio.NewReaderSize(stdout, 1<<20); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			s.lines <- line
		}
	}()
	_, err = s.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"peers","version":"1"}}`)
	if err == nil {
		_, err = io.WriteString(stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("shaking hands: %w", err)
	}
	return s, nil
}

func (s *dropInServer) stop() {
	s.stdin.Close()
	s.cmd.Process.Kill()
	for range s.lines { // to its end
	}
	s.cmd.Wait()
}

// response is an answer, or something that the server says by itself.
type response struct {
	ID     *int           `json:"id"`
	Method string         `json:"method"`
	Result map[string]any `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// request sends a request and waits for its answer.
func (s *dropInServer) request(method, params string) (response, error) {
	s.last++
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", s.last, method, params)
	if _, err := io.WriteString(s.stdin, line); err != nil {
		return response{}, err
	}
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return response{}, io.ErrUnexpectedEOF
			}
			var m response
			if err := json.Unmarshal(line, &m); err != nil {
				return m, err
			}
			if m.ID != nil && *m.ID == s.last && m.Method == "" {
				return m, nil
			}
		case <-timeout:
			return response{}, fmt.Errorf("no answer within %v", patience)
		}
	}
}

// attempt makes the calls of a trial and looks what they have changed.
func (s *dropInServer) attempt(t trial, before map[string]string) (o trialOutcome, err error) {
	for _, c := range t {
		answer, err := s.ask(c)
		if err != nil {
			return o, fmt.Errorf("%v: %w", c, err)
		}
		o.answers = append(o.answers, answer)
	}
	if t.mutates() {
		after, err := snapshot(s.w)
		if err != nil {
			return o, err
		}
		o.changes = changesOf(before, after)
	}
	return o, nil
}

// ask makes a call and returns the answer as a text: the text of the answer where that is all there is, with "!" before it
// where it is an error, else the result as JSON. What differs from run to run is taken out.
func (s *dropInServer) ask(c toolCall) (string, error) {
	method, params := "tools/call", fmt.Sprintf(`{"name":%q}`, c.tool)
	if c.args != "" {
		params = fmt.Sprintf(`{"name":%q,"arguments":%s}`, c.tool, strings.ReplaceAll(c.args, "$W", s.w))
	}
	if c.tool == "tools/list" {
		method, params = c.tool, "{}"
	}
	m, err := s.request(method, params)
	if err != nil {
		return "", err
	}
	if m.Error != nil {
		return s.places.Replace(fmt.Sprintf("!error %d: %s", m.Error.Code, m.Error.Message)), nil
	}
	text := s.places.Replace(plainText(m.Result))
	return moments.ReplaceAllString(text, "$1 <a moment>"), nil
}

// moments are lines of get_file_info that say when a file was made and read: no test can set the first.
var moments = regexp.MustCompile(`(?m)^(created:|accessed:) [A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT\+0000 \(Coordinated Universal Time\)$`)

// plainText is a result as a text.
func plainText(result map[string]any) string {
	delete(result, "_meta")
	if blocks, ok := result["content"].([]any); ok && len(blocks) == 1 {
		block, _ := blocks[0].(map[string]any)
		text, ok := block["text"].(string)
		structured, _ := result["structuredContent"].(map[string]any)
		failed := result["isError"] == true
		switch {
		case !ok || len(block) != 2:
		case failed && result["structuredContent"] == nil:
			return "!" + text
		case !failed && len(structured) == 1 && structured["content"] == text:
			return text
		}
	}
	b, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// snapshot describes everything beneath a directory, as far as it may be read.
func snapshot(w string) (map[string]string, error) {
	seen := map[string]string{}
	err := filepath.WalkDir(w, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			what += " " + short(string(b))
			if n, _ := syscall.Getxattr(path, attribute, nil); n > 0 {
				what += " with an attribute"
			}
		case info.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what = "-> " + to
		}
		name := strings.ReplaceAll(strings.TrimPrefix(path, w+"/"), w, "$W")
		if strings.Contains(name, ".rootbound-trash/") {
			return nil // its names are new each time
		}
		seen[name] = strings.ReplaceAll(what, w, "$W")
		return nil
	})
	return seen, err
}

// changesOf returns what is in another way than before, by path.
func changesOf(before, after map[string]string) map[string]string {
	changes := map[string]string{}
	for path, is := range after {
		if before[path] != is {
			changes[path] = is
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			changes[path] = "gone"
		}
	}
	return changes
}

// diskDifference says what two servers changed in another way, a line for each path.
func diskDifference(want, got map[string]string) string {
	paths := map[string]bool{}
	for _, changes := range []map[string]string{want, got} {
		for path := range changes {
			paths[path] = true
		}
	}
	var lines []string
	for path := range paths {
		if a, b := want[path], got[path]; a != b {
			lines = append(lines, fmt.Sprintf("%s: %s | %s", strings.ReplaceAll(path, "\n", `\n`), orUnchanged(a), orUnchanged(b)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func orUnchanged(change string) string {
	if change == "" {
		return "unchanged"
	}
	return change
}

// clearTree removes everything but the roots and what holds them.
func clearTree(w string, dirs []string) error {
	keep := func(path string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return d == path || strings.HasPrefix(d, path+"/") })
	}
	var clear func(dir string) error
	clear = func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if keep(path) {
				err = clear(path)
			} else {
				err = removeTree(path)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return clear(w)
}

// removeTree removes also what lies in directories that may not be read or changed.
func removeTree(path string) error {
	filepath.WalkDir(path, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// plain runs a command as what an ordinary user runs is: when it is the superuser's, without the right to read what no one
// may read.
func plain(args []string) int {
	const (
		prCapbsetDrop    = 24
		capDacOverride   = 1
		capDacReadSearch = 2
	)
	runtime.LockOSThread()
	if os.Geteuid() == 0 {
		for _, c := range []uintptr{capDacOverride, capDacReadSearch} {
			if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, prCapbsetDrop, c, 0); err != 0 {
				fmt.Fprintf(os.Stderr, "giving up a right: %v\n", err)
				return 1
			}
		}
	}
	path, err := exec.LookPath(args[0])
	if err == nil {
		err = syscall.Exec(path, args, os.Environ())
	}
	fmt.Fprintf(os.Stderr, "starting %q: %v\n", args, err)
	return 1
}

func init() { roles["plain"] = plain }
