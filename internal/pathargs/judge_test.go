package pathargs

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// world is a directory W with two roots, and what is outside of them.
func world(t testing.TB) (w string, set roots.Set, p Process) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the tree has names and links that Windows does not")
	}
	w, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"R/sub/deep", "R/my dir", "RO", "outside", "home/.ssh", "root two"} {
		if err := os.MkdirAll(filepath.Join(w, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"R/f", "R/sub/g", "R/my dir/f", "RO/ro", "outside/f", "root two/x", "R/100%"} {
		if err := os.WriteFile(filepath.Join(w, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"R/out": "../outside", "R/in": "sub/deep", "R/dangling": "../outside/new", "R/toRO": "../RO", "RO/out": "../outside",
	} {
		if err := os.Symlink(target, filepath.Join(w, link)); err != nil {
			t.Fatal(err)
		}
	}
	resolve := func(name string, a roots.Access) roots.Dir {
		d, err := roots.Resolve(filepath.Join(w, name), roots.ResolveOptions{Access: a})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	set = roots.NewSet(resolve("R", roots.ReadWrite), resolve("RO", roots.ReadOnly), resolve("root two", roots.ReadWrite))
	return w, set, Process{Dir: filepath.Join(w, "R"), Home: filepath.Join(w, "home")}
}

// toolCall makes the params of a call in which W stands for the directory.
func toolCall(t testing.TB, w, tool string, arguments map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.ReplaceAll(string(b), "W/", w+"/"))
}

func TestJudge(t *testing.T) {
	w, set, p := world(t)
	const (
		ok       = ""
		unjudged = "unjudged"
	)
	outside, forbidden, unresolvable := Outside.String(), Forbidden.String(), Unresolvable.String()
	tests := []struct {
		tool, arg, value string
		want             string
	}{
		{"read", "path", "W/R/f", ok},
		{"read", "path", "f", ok},
		{"read", "path", "W/R/new/file", ok},
		{"read", "path", "W/R", ok},
		{"read", "path", ".", ok},
		{"read", "path", "W/R/文件/ünï", ok},
		{"read", "path", "W/outside/f", outside},
		{"read", "path", "W/R/../outside/f", outside},
		{"read", "path", "../outside/f", outside},
		{"read", "path", "/", outside},
		{"read", "path", "/etc/passwd", outside},
		{"read", "path", "W/Root", outside},
		{"read", "path", "W/r/f", outside},
		{"read", "path", "W/Rx/f", outside},

		// Links, and ".." after them: by the system and in the text.
		{"read", "path", "W/R/in/x", ok},
		{"read", "path", "W/R/out/f", outside},
		{"read", "path", "out/f", outside},
		{"read", "path", "W/R/dangling", outside},
		{"read", "path", "W/R/toRO/ro", ok},
		{"write", "path", "W/R/toRO/ro", forbidden},
		{"read", "path", "W/R/in/../g", ok},
		{"read", "path", "W/R/in/../../f", outside}, // in the text it is W/f
		{"read", "path", "W/R/in/../../../R/f", outside},
		{"read", "path", "W/R/out/../f", outside},
		{"read", "path", "W/R/nope/../f", ok},
		{"read", "path", "W/R/nope/../../outside/f", outside},

		// Rights.
		{"write_file", "path", "W/R/f", ok},
		{"read_file", "path", "W/RO/ro", ok},
		{"write_file", "path", "W/RO/ro", forbidden},
		{"delete_file", "path", "W/RO/ro", forbidden},
		{"write_file", "path", "new", ok},       // in the working directory; the other root is not meant
		{"write_file", "path", "ro", forbidden}, // only the other root has it

		// Encodings and URIs.
		{"read", "path", "W/R/my%20dir/f", ok},
		{"read", "path", "W/R/100%", ok},
		{"read", "path", "W/R/%2e%2e/outside/f", outside},
		{"read", "path", "%2e%2e/outside/f", outside},
		{"read", "path", "W/R/%252e%252e/outside/f", outside},
		{"read", "path", "W/R/..%2foutside", outside},
		{"read", "path", "file://W/R/f", ok},
		{"read", "path", "file://W/outside/f", outside},
		{"read", "path", "file://localhostW/outside/f", outside},
		{"read", "path", "FILE:W/outside/f", outside},
		{"read", "path", "file://W/R/%2e%2e/outside/f", outside},
		{"read", "path", "file://other/etc/passwd", unresolvable},
		{"read", "path", "file://otherW/R/f", unresolvable},
		{"read", "uri", "file://W/R/my%20dir/f", ok},
		{"read", "uri", "file://W/root%20two/x", ok},
		{"read", "url", "file://W/root%20two/x#L10", ok},
		{"read", "url", "file://W/outside/f?W/R/f", outside},
		{"read", "url", "view-source:file://W/outside/f", outside},
		{"read", "url", "fi\nle://W/outside/f", outside},
		{"read", "url", "https://example.com/W/outside/f", unjudged},
		{"read", "path", "https://x/../../../../../../../../etc", outside},
		{"read", "path", "https://x/%2e%2e/%2e%2e/%2e%2e/%2e%2e/outside", outside},

		// What servers trim and expand.
		{"read", "path", " W/outside/f", outside},
		{"read", "path", "W/R ", outside}, // as it is, it is a name beside the root
		{"read", "path", "'W/outside/f'", outside},
		{"read", "path", "\ufeffW/outside", outside},
		{"read", "path", "\"W/R/f\"", ok},
		{"read", "path", "~/.ssh/id", outside},
		{"read", "path", "~", outside},
		{"read", "path", "~root/.ssh", outside},
		{"read", "path", "~outside/f", outside},
		{"read", "path", "~$lock.docx", ok},
		{"read", "path", "W/R/~/f", ok},
		{"read", "path", "$HOME/.ssh", outside},
		{"read", "path", "${HOME}", outside},

		// Another system's separators.
		{"read", "path", `..\outside\f`, outside},
		{"read", "path", `sub\g`, ok},
		{"read", "path", `C:\Windows\win.ini`, outside},
		{"read", "path", `C:/x`, outside},
		{"read", "path", `\\server\share`, outside},
		{"read", "path", `\etc\passwd`, outside},

		{"read", "path", "W/R/f:12", ok},
		{"read", "path", "W/R/in:/etc", ok},
		{"read", "x", "/etc:/mnt", outside},
		{"read", "x", "/etc: see there", unjudged},

		// Several in one string, and none.
		{"read", "paths", "W/R/f,W/outside/f", outside},
		{"read", "paths", "f, sub/g", ok},
		{"read", "files", "f\n/etc/passwd", outside},
		{"read", "paths", strings.Repeat("a,", 300), unresolvable},
		{"read", "path", "W/R/f\x00/../../outside", unresolvable},
		{"read", "path", "f\n", ok},
		{"read", "path", "W/R/f\n", ok},
		{"read", "path", strings.Repeat("x", 5000), unjudged},
		{"read", "path", strings.Repeat("a/../", 2000) + "../outside", outside},
		{"read", "path", strings.Repeat("./", 3000) + "f", ok},
		{"read", "path", "W/R/" + strings.Repeat("n", 300), unjudged},
		{"read", "path", "/" + strings.Repeat("n", 300) + "/../etc/passwd", outside},

		// By shape: only what is on this machine.
		{"read", "x", "W/outside/f", outside},
		{"read", "x", "W/R/f", ok},
		{"read", "x", "/no-such-directory-here/x", unjudged},
		{"read", "x", "/no-such-directory-here/../etc", outside},
		{"read", "x", "../outside", outside},
		{"read", "x", "./f", ok},
		{"read", "x", "sub/../../outside", outside},
		{"read", "x", "~/x", outside},
		{"read", "x", `C:\Windows`, unjudged},
		{"read", "x", `\d+\.\d+`, unjudged},
		{"read", "x", "// a comment", unjudged},
		{"read", "x", "file:///etc/passwd", outside},
		{"read", "x", "file:///no-such-directory-here", unjudged},
		{"read", "x", "file: see there", unjudged},
		{"read", "content", "/etc/passwd", unjudged},
	}
	for _, tt := range tests {
		value := strings.ReplaceAll(tt.value, "W/", w+"/")
		if tt.value == "W/R" || tt.value == "W/R " {
			value = strings.Replace(tt.value, "W", w, 1)
		}
		args, err := Find("tools/call", toolCall(t, w, tt.tool, map[string]any{tt.arg: value}), nil, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		v := Judge(args, set, p)
		got := unjudged
		for _, j := range v.Judged {
			got = j.Refusal.String()
			if j.Value != value {
				t.Errorf("%.60q: judged %.60q", value, j.Value)
			}
		}
		if got != tt.want {
			t.Errorf("%s %s=%.70q: %q, want %q (%+v)", tt.tool, tt.arg, tt.value, got, tt.want, v.Judged)
		}
	}
}

// Where nothing is allowed every reading is refused, and the one of which something is there is told.
func TestJudgeTellsWhatWasMeant(t *testing.T) {
	w, _, p := world(t)
	args, err := Find("tools/call", toolCall(t, w, "read", map[string]any{"path": "~/.ssh/id"}), nil, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	v := Judge(args, roots.Set{}, p)
	if len(v.Judged) != 1 || v.Judged[0].Refusal != Outside || v.Judged[0].Place.Path != filepath.Join(w, "home/.ssh/id") {
		t.Errorf("~/.ssh/id: %+v", v.Judged)
	}
}

// A process somewhere else: relative paths leave, whatever they name in a root.
func TestJudgeOtherDirectory(t *testing.T) {
	w, set, p := world(t)
	refusal := func(p Process, set roots.Set, value string) Refusal {
		t.Helper()
		args, err := Find("tools/call", toolCall(t, w, "read", map[string]any{"path": value}), nil, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		return Judge(args, set, p).Judged[0].Refusal
	}
	p.Dir = filepath.Join(w, "outside")
	if got := refusal(p, set, "f"); got != Outside {
		t.Errorf("from outside: %v", got)
	}
	p.Dir = filepath.Join(w, "R", "sub")
	if got := refusal(p, set, "../f"); got != Outside {
		t.Errorf("what is inside from here and outside from the root: %v", got)
	}
	if got := refusal(p, set, "g"); got != NotRefused {
		t.Errorf("from inside: %v", got)
	}
	p.Dir = ""
	if got := refusal(p, set, "f"); got != NotRefused {
		t.Errorf("in the roots alone: %v", got)
	}
	if got := refusal(p, roots.Set{}, "f"); got != Unresolvable {
		t.Errorf("nowhere: %v", got)
	}
	if got := refusal(p, roots.Set{}, "/etc"); got != Outside {
		t.Errorf("no roots: %v", got)
	}
}

// Every place where a server may go is told.
func TestJudgePlaces(t *testing.T) {
	w, set, p := world(t)
	for value, want := range map[string][]string{
		"sub/g":       {"R/sub/g"},
		"in/x":        {"R/sub/deep/x"},
		"sub%2Fg":     {"R/sub%2Fg", "R/sub/g"},
		"sub/../f":    {"R/f"},
		"ro":          {"R/ro", "RO/ro"}, // the other root has it
		"nowhere":     {"R/nowhere"},
		"../outside":  nil,
		"W/RO/../R/f": {"R/f"},
	} {
		args, err := Find("tools/call", toolCall(t, w, "read", map[string]any{"path": value}), nil, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, place := range Judge(args, set, p).Judged[0].Places {
			rel, err := filepath.Rel(w, place.Path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.ToSlash(rel))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
}

// The reading that is refused is told, with where it leads.
func TestJudgeTells(t *testing.T) {
	w, set, p := world(t)
	args, err := Find("tools/call", toolCall(t, w, "read", map[string]any{"path": "%2e%2e/outside/f", "file": "sub/g"}), nil, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	v := Judge(args, set, p)
	refused := v.Refused()
	if len(v.Judged) != 2 || len(refused) != 1 {
		t.Fatalf("%+v", v)
	}
	if j := refused[0]; j.Pointer != "/path" || j.Reading != "percent-decoded" || j.Place.Path != filepath.Join(w, "outside", "f") {
		t.Errorf("refused: %+v", j)
	}
	if j := v.Judged[0]; j.Place.Rel != filepath.Join("sub", "g") || j.Place.Dir.Path != filepath.Join(w, "R") || !j.Place.Exists {
		t.Errorf("allowed: %+v", j)
	}
}

// What servers do with a value, written without a look at readings.go: where any of them ends at something that exists
// outside the roots, the value is refused.
func FuzzJudge(f *testing.F) {
	for _, v := range []string{
		"f", "../outside/f", "out/f", "in/../../f", "%2e%2e/outside/f", "..%2foutside/f", "file:///etc", " ../outside", "~/.ssh", "toRO/out/f",
		"FILE:/etc", "file://localhost/etc/passwd", `..\outside\f`, "nope/../../outside", "/", "\"/etc\"", "f\x00/../../outside/f", "/etc:/mnt",
		"view-source:file:///etc", "%252e%252e/outside/f", "file:../outside", "sub//..//..//outside", "https://x/../../../outside", "./../outside/f#x",
	} {
		f.Add(v)
	}
	w, set, p := world(f)
	join := func(s string) string { // as path.resolve does
		if strings.HasPrefix(s, "/") {
			return filepath.Clean(s)
		}
		return filepath.Join(p.Dir, s)
	}
	servers := map[string]func(v string) string{
		"the system": func(v string) string {
			if strings.HasPrefix(v, "/") {
				return v
			}
			return p.Dir + "/" + v
		},
		"a resolver of text": join,
		"one that trims":     func(v string) string { return join(strings.TrimSpace(v)) },
		"one that unquotes":  func(v string) string { return join(strings.Trim(strings.TrimSpace(v), `"'`)) },
		"one that expands": func(v string) string {
			if rest, ok := strings.CutPrefix(v, "~"); ok && (rest == "" || rest[0] == '/') {
				return p.Home + rest
			}
			return join(v)
		},
		"one that decodes": func(v string) string {
			if d, err := url.PathUnescape(v); err == nil {
				v = d
			}
			return join(v)
		},
		"one that parses URIs": func(v string) string {
			if u, err := url.Parse(v); err == nil && u.Scheme == "file" && u.Path != "" {
				return join(u.Path)
			}
			return join(v)
		},
		"one that cuts the scheme": func(v string) string { return join(strings.TrimPrefix(v, "file://")) },
		"one that knows Windows":   func(v string) string { return join(strings.ReplaceAll(v, `\`, "/")) },
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !utf8.ValidString(value) || isAddress(value) && !climbs(value) {
			return
		}
		args, err := Find("tools/call", toolCall(t, w, "read", map[string]any{"path": value}), nil, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if len(args) == 0 && value != "" {
			t.Fatalf("%q is not found", value)
		}
		refused := len(Judge(args, set, p).Refused()) > 0
		value = strings.ReplaceAll(value, "W/", w+"/") // as toolCall did
		for name, server := range servers {
			real, err := filepath.EvalSymlinks(server(value))
			if err != nil || value == "" || refused {
				continue
			}
			if place, err := rootfs.Locate(set, real, rootfs.Process{}); err != nil || !place.Inside {
				t.Errorf("%s reads %q as %q, and it is not refused", name, value, real)
			}
		}
	})
}

// What is as long as a message may be costs no more for each root, and for each way to read it there is an end.
func TestLongTexts(t *testing.T) {
	var dirs []roots.Dir
	for range 20 {
		d, err := roots.Resolve(t.TempDir(), roots.ResolveOptions{Access: roots.ReadWrite})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	set := roots.NewSet(dirs...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := spread(strings.Repeat("a/", 8<<20), set, Process{})
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; len(got) != 0 || n > 64 {
		t.Errorf("a text of 16 MiB is taken for %d paths, in %d MiB", len(got), n)
	}
	short := spread(strings.Repeat("a/../", 10_000)+"x", set, Process{})
	if want := filepath.Join(dirs[0].Path, "x"); len(short) != len(dirs) || short[0].path != want {
		t.Errorf("what is short without its dots is %d paths, the first %.200q, want %q", len(short), short[0].path, want)
	}

	r := &reader{seen: make(map[string]bool), room: 20}
	r.value("%2561/%2561", false)
	if last := r.list[len(r.list)-1]; last.err != errManyWays {
		t.Errorf("readings beyond the room for them: %+v", r.list)
	}
	if list := readings(Argument{Value: strings.Repeat("a,", maxParts+1), plural: true}, ""); len(list) != 1 || list[0].err != errManyParts {
		t.Errorf("too many parts are %d readings", len(list))
	}
}
