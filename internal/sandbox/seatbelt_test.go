package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

// The profiles as macOS would get them.
func TestProfiles(t *testing.T) {
	const root, file = "/Users/me/My \"proj\"", "/Users/me/notes.md"
	server := Rule{Path: "/opt/homebrew/Cellar/node/24.1.0/bin/node", Access: roots.Read, Execute: true}
	profiles := map[string]Policy{
		"nothing": {},
		"roots": {Rules: []Rule{
			{Path: root, Access: roots.ReadWrite},
			{Path: "/Users/me/docs", Access: roots.ReadOnly},
			{Path: "/Users/me/keep", Access: roots.Read | roots.Write},
			{Path: "/Users/me/clean", Access: roots.Delete},
			{Path: file, Access: roots.ReadWrite},
			{Path: "/Users/me/names", List: true},
			server,
		}},
		"excepts": {Rules: []Rule{{Path: root, Access: roots.ReadWrite}, server}, Excepts: []Except{
			{Path: root + "/.git/hooks", Access: roots.ReadOnly}, {Path: file},
		}},
		"net-proxy":      {Rules: []Rule{server}, Net: Net{Proxy: 40123}},
		"net-proxy-unix": {Rules: []Rule{server}, Net: Net{Proxy: 40123}, Unix: true},
		"net-all":        {Rules: []Rule{server}, Net: Net{All: true}},
		"net-all-unix":   {Rules: []Rule{server}, Net: Net{All: true}, Unix: true},
		"unix":           {Rules: []Rule{server}, Unix: true},
	}
	files := []string{file, server.Path}
	for name, p := range profiles {
		got, err := p.profile(func(path string) bool { return path != files[0] && path != files[1] })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden := filepath.Join("testdata", "seatbelt", name+".sb")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A name that could say something else than itself is refused, not bent.
func TestPathsThatAProfileCannotSay(t *testing.T) {
	for _, path := range []string{"", "relative", "/a\nb", "/a\x00b", "/a\x7fb", "/a\xffb"} {
		for _, access := range []roots.Access{0, roots.ReadWrite} {
			p := Policy{Rules: []Rule{{Path: path, Access: access}}}
			if got, err := p.profile(func(string) bool { return true }); err == nil {
				t.Errorf("%q, %v: no error, and the profile %q", path, access, strings.TrimPrefix(got, seatbelt))
			}
		}
	}
}

// Whatever a path is, it is one string in a profile, and nothing of it is read as a rule.
func FuzzPathInAProfile(f *testing.F) {
	for _, path := range []string{"/plain", `/a") (allow default) ("`, `/a\`, `/a\"`, `/\\"`, "/ü/№"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p := Policy{Rules: []Rule{{Path: path, Access: roots.ReadOnly}}}
		got, err := p.profile(func(string) bool { return true })
		if err != nil {
			return
		}
		const head, tail = `(allow file-read* file-map-executable (subpath "`, "))\n"
		rule := strings.TrimPrefix(got, seatbelt)
		quoted, ok := strings.CutPrefix(rule, head)
		if !ok {
			t.Fatalf("the rule is %q", rule)
		}
		var read strings.Builder // as Scheme reads a string
		for i := 0; i < len(quoted); i++ {
			switch quoted[i] {
			case '\\':
				i++
				if quoted[i] != '\\' && quoted[i] != '"' {
					t.Fatalf("%q escapes what needs none", rule)
				}
			case '"':
				if rest := quoted[i+1:]; read.String() != path || rest != tail {
					t.Fatalf("read %q and then %q, want %q", read.String(), rest, path)
				}
				return
			}
			read.WriteByte(quoted[i])
		}
		t.Fatalf("the string in %q does not end", rule)
	})
}
