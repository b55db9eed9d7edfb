package peers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// suite is where the official conformance suite is installed.
const suite = "conformance/node_modules"

// revisions are those that the suite has requirements of.
var revisions = []string{"2025-11-25", "2026-07-28"}

// needSuite skips a test when the suite is not installed; in CI it fails instead. It returns the Node that runs it.
func needSuite(t *testing.T) string {
	t.Helper()
	node, err := filepath.Glob(suite + "/node-*/bin/node")
	if err != nil || len(node) != 1 {
		missing(t, "finding the conformance suite (run .ci/peers): no Node in "+suite)
	}
	return node[0]
}

// verdicts are what the suite found: the worst that was said of each check, by SCENARIO:CHECK.
type verdicts struct {
	worst map[string]check
	count map[string]*tally // by scenario
}

// tally counts checks, of which a name may have several.
type tally struct{ passed, failed int }

func (v verdicts) String() string {
	var all tally
	for _, n := range v.count {
		all.passed += n.passed
		all.failed += n.failed
	}
	return fmt.Sprintf("%d scenarios, %d checks passed, %d did not", len(v.count), all.passed, all.failed)
}

// run runs all of the suite's scenarios of a revision, for a server or for a client.
func run(t *testing.T, revision, leg string, args ...string) verdicts {
	t.Helper()
	return runOnly(t, required(t, revision, leg), leg, append([]string{"--requirements", revision}, args...)...)
}

// runOnly runs scenarios that the arguments say, at least the given ones.
func runOnly(t *testing.T, scenarios []string, leg string, args ...string) verdicts {
	t.Helper()
	out := t.TempDir()
	args = slices.Concat([]string{suite + "/@modelcontextprotocol/conformance/dist/index.js", leg, "-o", out}, args)
	said, err := exec.Command(needSuite(t), args...).CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) { // its own verdict knows nothing of our baselines
		t.Fatal(err)
	}
	found := findings(t, out, leg)
	for _, scenario := range scenarios {
		if found[scenario] == nil {
			t.Errorf("%s was not run:\n%s", scenario, said[max(0, len(said)-3000):])
		}
	}
	v := verdicts{worst: map[string]check{}, count: map[string]*tally{}}
	for scenario, checks := range found {
		n := &tally{}
		v.count[scenario] = n
		checks = slices.DeleteFunc(checks, func(c check) bool { return c.Status == "INFO" })
		if len(checks) == 0 {
			checks = []check{{ID: "nothing", Status: "NOTHING", Error: "nothing was checked"}}
		}
		for _, c := range checks {
			if c.Status == "SUCCESS" {
				n.passed++
			} else {
				n.failed++
			}
			name := scenario + ":" + c.ID
			if slices.Index(statuses, c.Status) >= slices.Index(statuses, v.worst[name].Status) {
				v.worst[name] = c
			}
		}
	}
	return v
}

// statuses of checks, the best first.
var statuses = []string{"SUCCESS", "SKIPPED", "NOTHING", "WARNING", "FAILURE"}

// conform holds what the suite finds to a baseline.
func conform(t *testing.T, baseline, revision, leg string, args ...string) {
	t.Helper()
	hold(t, baseline, run(t, revision, leg, args...), always)
}

func always(string) bool { return true }

// hold fails the test for every check that is expected to pass, does not, and is not in the baseline, and for what is in the
// baseline and passes. More are baselines of which every line holds here, too.
func hold(t *testing.T, baseline string, v verdicts, expected func(name string) bool, more ...string) {
	t.Helper()
	known := map[string]bool{}
	for _, name := range append(more, baseline) {
		maps.Copy(known, readBaseline(t, filepath.Join("conformance", name+".txt")))
	}
	for _, name := range slices.Sorted(maps.Keys(v.worst)) {
		c := v.worst[name]
		if _, ok := known[name]; ok {
			known[name] = c.Status != "SUCCESS"
		} else if c.Status != "SUCCESS" && expected(name) {
			t.Errorf("%s %s: %s\n%.1000s", c.Status, name, c.Error, c.Details)
		}
	}
	for name, fails := range known {
		if !fails {
			t.Errorf("%s passes now: take it out of %s.txt", name, strings.Join(append(more, baseline), ".txt or "))
		}
	}
	t.Logf("%s: %s", baseline, v)
}

// check is what the suite says of one thing.
type check struct {
	ID, Status string
	Error      string `json:"errorMessage"`
	Details    json.RawMessage
}

// stamped is what the suite puts behind the name of a scenario.
var stamped = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[-\d]+Z$`)

// findings are all checks that a run left in a directory, by scenario.
func findings(t *testing.T, dir, leg string) map[string][]check {
	t.Helper()
	found := map[string][]check{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		name, err := filepath.Rel(dir, stamped.ReplaceAllString(filepath.Dir(path), ""))
		if err != nil {
			return err
		}
		if leg == "server" {
			name = strings.TrimPrefix(name, "server-")
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		checks := []check{}
		if err := json.Unmarshal(b, &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found[name] = checks
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// required are the scenarios that a revision requires of a server or a client.
func required(t *testing.T, revision, leg string) (names []string) {
	t.Helper()
	b, err := os.ReadFile(suite + "/@modelcontextprotocol/conformance/requirements/" + revision + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	in := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutPrefix(line, "  - "); ok && in {
			names = append(names, name)
		} else if line != "" {
			in = line == leg+":"
		}
	}
	if len(names) < 15 {
		t.Fatalf("read only %d requirements of %s", len(names), revision)
	}
	return names
}

// readBaseline reads what is known to fail: paragraphs of lines SCENARIO:CHECK below the reason, a comment.
func readBaseline(t *testing.T, file string) map[string]bool {
	t.Helper()
	k := map[string]bool{}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k // nothing is
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reason := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "":
			reason = false
		case strings.HasPrefix(line, "# "):
			reason = true
		case !reason:
			t.Errorf("%s: %s has no reason", file, line)
		default:
			k[line] = false
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestFilesystemServerConforms holds the filesystem server to the suite, which asks for the tools, prompts and resources of a server
// of its own: what only those can pass is in the baseline.
func TestFilesystemServerConforms(t *testing.T) {
	needSuite(t)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			l := listen(t, "fs", "--preset", "boundary", "--client-roots", "ignore", "--listen", "127.0.0.1:0", workspace(t))
			conform(t, "fs-"+revision, revision, "server", "--url", l.url)
		})
	}
}

// TestCoreConforms holds what our servers are built on to the suite, by a server that has what the suite asks for.
func TestCoreConforms(t *testing.T) {
	needSuite(t)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			conform(t, "core-"+revision, revision, "server", "--url", serve(t, fixtures, "-listen", "127.0.0.1:0").url)
		})
	}
}
