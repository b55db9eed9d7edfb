package pathargs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// example is a request that a client of a popular server sends, judged by hand: Want points to the arguments that name
// files or directories of this machine. {R} is a root, {O} lies outside.
type example struct {
	Server, Tool, Method string
	Where                string
	Filesystem           bool
	Schema, Arguments    json.RawMessage
	Want                 []string
	Note                 string
}

// TestCorpus measures how well the rules find paths where nothing is configured. A miss is a path that is not checked,
// a false alarm an argument that is judged without being one (and refused when it happens to lead outside).
func TestCorpus(t *testing.T) {
	w, set, p := world(t)
	b, err := os.ReadFile(filepath.Join("testdata", "corpus.json"))
	if err != nil {
		t.Fatal(err)
	}
	r, o := filepath.Join(w, "R"), filepath.Join(w, "outside")
	var examples []example
	if err := json.Unmarshal([]byte(strings.NewReplacer("{R}", r, "{O}", o).Replace(string(b))), &examples); err != nil {
		t.Fatal(err)
	}
	servers := make(map[string]bool)
	var hits, misses, alarms, arguments int
	for _, e := range examples {
		servers[e.Server] = true
		rules := Rules{Filesystem: e.Filesystem}
		if e.Where == "elsewhere" {
			rules.Where = Elsewhere
		}
		var c Catalog
		if e.Schema != nil {
			c.Learn("", fmt.Appendf(nil, `{"tools":[{"name":%q,"inputSchema":%s}]}`, e.Tool, e.Schema))
		}
		method, params := e.Method, fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, e.Tool, e.Arguments)
		switch method {
		case "":
			method = "tools/call"
		case "resources/read":
			params = e.Arguments
		}
		args, err := Find(method, params, &c, rules)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range Judge(args, set, p).Judged {
			got = append(got, j.Pointer)
		}
		arguments += strings.Count(string(e.Arguments), `"`) / 2
		for i, want := range e.Want {
			// A pointer escapes the slashes of what the corpus writes as {O}.
			if strings.Contains(want, o) {
				want = strings.Replace(want, o, strings.ReplaceAll(o, "/", "~1"), 1)
				e.Want[i] = want
			}
			if slices.Contains(got, want) {
				hits++
			} else {
				misses++
				t.Logf("missed: %s %s %s %s", e.Server, e.Tool, want, e.Note)
			}
		}
		for _, g := range got {
			if !slices.Contains(e.Want, g) {
				alarms++
				t.Logf("false alarm: %s %s %s %s", e.Server, e.Tool, g, e.Note)
			}
		}
	}
	precision, recall := float64(hits)/float64(hits+alarms), float64(hits)/float64(hits+misses)
	t.Logf("%d servers, %d requests, %d strings: %d paths found, %d missed, %d false alarms: precision %.3f, recall %.3f",
		len(servers), len(examples), arguments, hits, misses, alarms, precision, recall)
	if len(servers) < 30 || precision < 0.95 || recall < 0.98 {
		t.Errorf("precision %.3f, recall %.3f over %d servers: worse than it was", precision, recall, len(servers))
	}
}
