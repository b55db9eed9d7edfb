package fsserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// readURI reads a resource and returns its content, or the error with its code.
func readURI(t testing.TB, s *Server, era exchange.Era, set roots.Set, uri string) (kind, content, problem string) {
	t.Helper()
	got := ask(t, s, request(era, "resources/read", `{"uri":`+quoteJSON(uri)+`}`, set))
	var result struct {
		Contents []struct{ URI, MIMEType, Text, Blob string }
		Code     int
		Message  string
		Data     struct{ Reason, URI string }
	}
	if err := json.Unmarshal([]byte(got), &result); err != nil {
		t.Fatalf("%s: %v: %.200s", uri, err, got)
	}
	if result.Code != 0 {
		return "", "", result.Data.Reason + ": " + result.Message
	}
	if len(result.Contents) != 1 || result.Contents[0].URI != uri {
		t.Fatalf("%s: contents %.200s", uri, got)
	}
	c := result.Contents[0]
	if c.Blob != "" {
		b, err := base64.StdEncoding.DecodeString(c.Blob)
		if err != nil || c.Text != "" {
			t.Fatalf("%s: %v: %.200s", uri, err, got)
		}
		return c.MIMEType, string(b), ""
	}
	return c.MIMEType, c.Text, ""
}

func TestReadResources(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00"
	dir := old(t, tree(t, map[string]string{
		"a b.md": "# Ü\r\n", "empty": "", "zero.txt": "a\x00b", "latin1.txt": "\xfc", "Logo.PNG": png, "data.bin": "\xff\xfe",
		"bom.json": "\ufeff{}", "sub/x": "1", "100% #1?": "odd",
	}))
	if err := os.WriteFile(filepath.Join(dir, "large"), bytes.Repeat([]byte{'x'}, maxText+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "swells"), bytes.Repeat([]byte{1}, maxText), 0o600); err != nil {
		t.Fatal(err)
	}
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	s := newServer(t)
	in := func(name string) string { return roots.FileURI(filepath.Join(dir, name)) }
	for _, era := range eras {
		for name, want := range map[string][2]string{
			"a b.md": {"text/markdown", "# Ü\r\n"}, "empty": {"text/plain", ""}, "zero.txt": {unknownType, "a\x00b"},
			"latin1.txt": {unknownType, "\xfc"}, "Logo.PNG": {"image/png", png}, "data.bin": {unknownType, "\xff\xfe"},
			"bom.json": {"application/json", "\ufeff{}"}, "sub/x": {"text/plain", "1"}, "100% #1?": {"text/plain", "odd"},
			"sub": {directoryType, in("sub/x") + "\n"},
		} {
			if kind, content, problem := readURI(t, s, era, set, in(name)); kind != want[0] || content != want[1] || problem != "" {
				t.Errorf("%v %s: %s %q %s, want %s %q", era, name, kind, content, problem, want[0], want[1])
			}
		}
		for uri, want := range map[string]string{
			in("large"):                           "too_large: EFBIG: file too large, read '" + filepath.Join(dir, "large") + "': it has 4194305 bytes",
			in("swells"):                          "too_large: The answer would be ",
			in("nothing"):                         "not_found: resource not found: ",
			in("empty/x"):                         "not_a_directory: ENOTDIR: ",
			roots.FileURI(dir) + "/../x":          "invalid_path: Access denied - ",
			roots.FileURI(dir + "2"):              "not_found: resource not found: ",
			"file://elsewhere.example/x":          "invalid_path: Access denied - ",
			"https://example.org/":                "not_found: resource not found: ",
			filepath.Join(dir, "a b.md"):          "not_found: resource not found: ",
			"":                                    "not_found: resource not found: ",
			roots.FileURI(dir) + "/%00":           "invalid_path: Access denied - ",
			"file:///" + strings.Repeat("x", 300): "not_found: resource not found: ",
		} {
			if runtime.GOOS == "windows" && uri == "file://elsewhere.example/x" {
				continue // a share
			}
			if kind, content, problem := readURI(t, s, era, set, uri); !strings.HasPrefix(problem, want) {
				t.Errorf("%v %.100s: %s %.100q %s, want %s", era, uri, kind, content, problem, want)
			}
		}
		if _, _, problem := readURI(t, s, era, roots.Set{}, in("empty")); !strings.HasPrefix(problem, "no_roots: No directory is allowed") {
			t.Errorf("%v without a root: %s", era, problem)
		}
	}
}

// A link that ends outside, one that leads to nothing outside, and a name that is nowhere are one answer.
func TestAResourceOutsideIsNotTold(t *testing.T) {
	outside := old(t, tree(t, map[string]string{"secret": "s"}))
	dir := old(t, tree(t, map[string]string{"a": "a"}))
	uris := []string{roots.FileURI(filepath.Join(dir, "nowhere")), roots.FileURI(filepath.Join(outside, "secret")), roots.FileURI(filepath.Join(outside, "nothing"))}
	for name, to := range map[string]string{"there": "secret", "not-there": "nothing"} {
		if err := os.Symlink(filepath.Join(outside, to), filepath.Join(dir, name)); err != nil {
			continue // on Windows that needs a right
		}
		uris = append(uris, roots.FileURI(filepath.Join(dir, name)))
	}
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	for _, era := range eras {
		var first string
		for _, uri := range uris {
			_, _, problem := readURI(t, newServer(t), era, set, uri)
			if first == "" {
				first = problem
			}
			if problem != first || !strings.HasPrefix(problem, "not_found: ") {
				t.Errorf("%v %s: %q, want %q", era, uri, problem, first)
			}
		}
	}
}

func TestListResources(t *testing.T) {
	dir := old(t, tree(t, map[string]string{"a/x": "", "b/page.html": "", "c/x": ""}))
	at := func(name, as string, access roots.Access) roots.Dir {
		d := resolve(t, filepath.Join(dir, name), access)
		d.Name = as
		return d
	}
	uri := func(name string) string { return quoteJSON(roots.FileURI(filepath.Join(dir, name))) }
	got := listResources(roots.NewSet(at("a", "", roots.ReadOnly), at("b/page.html", "我的", roots.ReadWrite), at("c", "hole", 0)))
	want := `"resources":[{"uri":` + uri("a") + `,"name":"a","mimeType":"inode/directory"},{"uri":` + uri("b/page.html") + `,"name":"我的","mimeType":"text/html"}]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongDirectoriesSayWhatIsLeftOut(t *testing.T) {
	entries := []rootfs.Entry{{Name: "a b"}, {Name: "d", Type: os.ModeDir}, {Name: "z"}}
	dir := t.TempDir()
	uri := func(name string) string { return roots.FileURI(filepath.Join(dir, name)) }
	if got, want := listURIs(dir, entries, 1), uri("a b")+"\n# 2 more are not listed, because one answer carries at most 1 bytes of them. To go on, read "+roots.FileURI(dir)+"?cursor=a%20b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := listURIs(dir, entries, 1000), uri("a b")+"\n"+uri("d")+"/\n"+uri("z")+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A directory that does not fit is read to its end by the URIs that its lists give, with nothing twice and nothing lost.
func TestLongDirectoriesAreReadOn(t *testing.T) {
	files := map[string]string{"file": ""}
	for i := range 3 * maxList / 800 {
		files[fmt.Sprintf("d/%05d #?&=+%%%s", i, strings.Repeat("é", 110))] = ""
	}
	dir := old(t, tree(t, files))
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	for _, era := range eras {
		s, next, seen := newServer(t), roots.FileURI(filepath.Join(dir, "d")), 0
		last := ""
		for reads := 0; next != ""; reads++ {
			kind, content, problem := readURI(t, s, era, set, next)
			if kind != directoryType || problem != "" || reads > 10 {
				t.Fatalf("%v: %s is %s, %s, after %d reads", era, next, kind, problem, reads)
			}
			next = ""
			for line := range strings.Lines(content) {
				line = strings.TrimSuffix(line, "\n")
				if note, isNote := strings.CutPrefix(line, "# "); isNote {
					_, next, _ = strings.Cut(note, "To go on, read ")
				} else if seen++; line <= last {
					t.Fatalf("%v: %s comes behind %s", era, line, last)
				} else {
					last = line
				}
			}
		}
		if seen != len(files)-1 {
			t.Errorf("%v: %d of %d were listed", era, seen, len(files)-1)
		}
		for uri, want := range map[string]string{
			roots.FileURI(filepath.Join(dir, "file")) + "?cursor=x":    "not_a_directory: ENOTDIR: ",
			roots.FileURI(filepath.Join(dir, "none")) + "?cursor=x":    "not_found: ",
			roots.FileURI(filepath.Join(dir, "d")) + "?cursor=%zz":     "invalid_path: ",
			roots.FileURI(filepath.Join(dir, "d")) + "?other=x":        "invalid_path: ",
			roots.FileURI(filepath.Dir(dir)) + "?cursor=x":             "not_found: ",
			roots.FileURI(filepath.Join(dir, "d")) + "/../?cursor=%2e": "invalid_path: ",
		} {
			if _, _, problem := readURI(t, s, era, set, uri); !strings.HasPrefix(problem, want) {
				t.Errorf("%v %s: %q, want %q", era, uri, problem, want)
			}
		}
		if _, content, problem := readURI(t, s, era, set, roots.FileURI(filepath.Join(dir, "d"))+"?cursor=zzz"); content != "" || problem != "" {
			t.Errorf("%v behind the end: %q, %s", era, content, problem)
		}
	}
}

// The reference server has no resources, and a client that asks hears that.
func TestCompatHasNoResources(t *testing.T) {
	s := New(Options{Name: "files", Title: "Files", Version: "1.2", Compat: true})
	defer s.Close()
	for _, era := range eras {
		for _, method := range []string{"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe"} {
			got := ask(t, s, request(era, method, `{"uri":"file:///x"}`, roots.Set{}))
			if want := `{"code":-32601,"message":"method not found: \"` + method + `\""}`; got != want {
				t.Errorf("%v %s: %s, want %s", era, method, got, want)
			}
		}
	}
	if got := ask(t, s, request(exchange.Legacy, "initialize", "{}", roots.Set{})); !strings.Contains(got, `"capabilities":{"tools":{}}`) {
		t.Errorf("initialize: %s", got)
	}
}

// A large text, one that JSON makes longer, and data, each written as an answer is.
func BenchmarkReadResource(b *testing.B) {
	for name, content := range map[string][]byte{
		"text": bytes.Repeat([]byte("fifteen letters\n"), maxText/16), "quotes": bytes.Repeat([]byte("\"a\"\t\n"), maxText/6), "data": bytes.Repeat([]byte{0, 1}, maxText/2),
	} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "f")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				b.Fatal(err)
			}
			s, set := newServer(b), roots.NewSet(resolve(b, filepath.Dir(path), roots.ReadOnly))
			w := wire.NewWriter(io.Discard)
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				o := exchange.Do(b.Context(), s, request(exchange.Legacy, "resources/read", `{"uri":`+quoteJSON(roots.FileURI(path))+`}`, set))
				if failed := o.Msg.Error() != nil; w.Send(o.Msg) != nil || failed {
					b.Fatal("it is not read")
				}
			}
		})
	}
}
