package peers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// counted is how many cases of a class came to each verdict: those that can be tried, without what depends on time.
type counted struct{ held, leaked, failed, design int }

// verified are servers, and what is known of them by hand: for each class, over the eras that they speak.
var verified = []struct {
	name    string
	command []string
	node    bool
	eras    string
	tools   int
	classes map[string]counted
	races   int // which may be held or lost
}{
	{
		name: "the reference server", command: []string{"node", abs("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), "{roots}"},
		node: true, eras: "legacy", tools: 12, races: 8, classes: map[string]counted{
			"questions": {held: 5}, "traversal": {held: 142}, "names": {held: 121, leaked: 9}, "URIs": {held: 42},
			"links": {held: 94, leaked: 2, design: 1}, "special files": {held: 32, failed: 2}, "creation": {held: 5},
			"limits": {held: 4, failed: 2}, "roots": {held: 13, design: 1}, "protocol": {held: 10},
		},
	},
	{name: "a server without files, on the Go SDK", command: self("goserver"), eras: "legacy modern", classes: map[string]counted{"protocol": {held: 18, failed: 1}}},
	{name: "the same of the handshake revisions", command: self("goserver", "legacy"), eras: "legacy", classes: map[string]counted{"protocol": {held: 8}}},
	{name: "the same of the stateless revision", command: self("goserver", "modern"), eras: "modern", classes: map[string]counted{"protocol": {held: 10, failed: 2}}},
}

// ofTime are cases whose outcome depends on what comes first, on how busy the machine is, or on who may make a device.
var ofTime = map[string]bool{"SQ-03": true, "E50": true, "E52": true, "E116": true, "E118": true, "E105": true}

// TestVerify compares what is found of real servers with what is known of them.
func TestVerify(t *testing.T) {
	for _, v := range verified {
		t.Run(v.name, func(t *testing.T) {
			if v.node {
				needNode(t)
			}
			t.Parallel()
			dir := t.TempDir()
			report := filepath.Join(dir, "report.json")
			cmd := exec.CommandContext(t.Context(), guard, append([]string{"verify", "--race", "300ms", "--fail-on", "nothing", "--json", report, "--"}, v.command...)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			b, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			var r struct {
				Server struct {
					Eras   []string
					Opened []string
				}
				Tools     []struct{}
				Questions []struct{ ID, Verdict, Seen string }
				Cases     []struct{ ID, Class, Verdict, Seen string }
			}
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatal(err)
			}
			got := map[string]counted{}
			count := func(class, id, verdict, seen string) {
				c := got[class]
				switch verdict {
				case "held":
					c.held++
				case "leaked":
					c.leaked++
				case "failed":
					c.failed++
				case "allowed by design":
					c.design++
				case "inconclusive":
					t.Errorf("%s: inconclusive: %s", id, seen)
				}
				if c != (counted{}) {
					got[class] = c
				}
				if verdict == "leaked" || verdict == "failed" {
					t.Logf("%s %s: %s", id, verdict, seen)
				}
			}
			for _, q := range r.Questions {
				count("questions", q.ID, q.Verdict, q.Seen)
			}
			for _, c := range r.Cases {
				if !ofTime[c.ID] {
					count(c.Class, c.ID, c.Verdict, c.Seen)
				}
			}
			races := got["races"]
			delete(got, "races")
			if n := races.held + races.leaked; n != v.races || races.failed > 0 {
				t.Errorf("races: %+v, and %d were to be held or lost", races, v.races)
			}
			for class, want := range v.classes {
				if got[class] != want {
					t.Errorf("%s: %+v, want %+v", class, got[class], want)
				}
				delete(got, class)
			}
			if len(got) > 0 || strings.Join(r.Server.Eras, " ") != v.eras || len(r.Tools) != v.tools {
				t.Errorf("besides %+v; eras %v, %d tools", got, r.Server.Eras, len(r.Tools))
			}
			if runtime.GOOS == "linux" && v.tools == 0 && len(r.Server.Opened) == 0 {
				t.Error("there is nothing to judge, and nothing is said of what it opened")
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "rootbound-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
