package consent

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	files = Server{Name: "files", Runs: "npm:files"}
	other = Server{Name: "files", Runs: "npm:evil-files"}
)

// said is what holds, an entry a line.
func said(t *testing.T, f File) []string {
	t.Helper()
	entries, err := f.Entries()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		word := "waits"
		if e.Allowed {
			word = "allowed"
		}
		if e.Since.IsZero() {
			t.Errorf("%v does not say since when", e)
		}
		list = append(list, e.Runs+" "+e.Dir+" "+word)
	}
	return list
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func newFile(t *testing.T) File { return File(filepath.Join(t.TempDir(), "state", "consents.jsonl")) }

func TestWhatHolds(t *testing.T) {
	f := newFile(t)
	if got := said(t, f); got != nil {
		t.Errorf("before there is a file: %q", got)
	}
	must(t, f.Ask(files, "/a", "/b"), f.Ask(other, "/a"), f.Ask(files, "/a"), f.Allow(files, "/a"), f.Ask(files, "/a"))
	want := []string{"npm:evil-files /a waits", "npm:files /a allowed", "npm:files /b waits"}
	if diff := cmp.Diff(want, said(t, f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	must(t, f.Forget(files, "/a"), f.Forget(files, "/nothing"), f.Forget(other, "/a"))
	if diff := cmp.Diff([]string{"npm:files /b waits"}, said(t, f)); diff != "" {
		t.Errorf("after they were taken back, -want +got:\n%s", diff)
	}
	must(t, f.Ask(files, "/a"))
	if diff := cmp.Diff([]string{"npm:files /a waits", "npm:files /b waits"}, said(t, f)); diff != "" {
		t.Errorf("asked again, -want +got:\n%s", diff)
	}
	if runtime.GOOS != "windows" {
		info, err := os.Stat(string(f))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
}

func TestNamesThatAreNoText(t *testing.T) {
	f := newFile(t)
	dir := "/a \n\xff%41#"
	must(t, f.Allow(files, dir))
	if diff := cmp.Diff([]string{"npm:files " + dir + " allowed"}, said(t, f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestALongListWaitsInPart(t *testing.T) {
	f := newFile(t)
	for i := range 2 * maxWaiting {
		must(t, f.Ask(files, fmt.Sprintf("/%d", i)))
	}
	if n := len(said(t, f)); n != maxWaiting {
		t.Errorf("%d wait", n)
	}
}

func TestWatch(t *testing.T) {
	f := newFile(t)
	w := f.Watch(files)
	step := func(what string, changed bool, want ...string) {
		t.Helper()
		got, c, err := w.Changed()
		if diff := cmp.Diff(want, got); c != changed || err != nil || diff != "" {
			t.Errorf("%s: changed %v, %v, -want +got:\n%s", what, c, err, diff)
		}
	}
	step("at first", true)
	step("nothing happened", false)
	must(t, w.Ask("/a"), f.Allow(other, "/a"))
	step("it waits", true)
	must(t, f.Allow(files, "/a"))
	step("a person consented", true, "/a")
	step("nothing happened", false)
	must(t, f.Forget(files, "/a"))
	step("it was taken back", true)
}

// A line that cannot be read may be one that takes something back.
func TestADamagedFileAllowsNothing(t *testing.T) {
	for name, damage := range map[string]func(f File) error{
		"a torn line": func(f File) error {
			text, _ := os.ReadFile(string(f))
			return os.WriteFile(string(f), text[:len(text)-10], 0o600)
		},
		"a word of a later version": func(f File) error {
			return os.WriteFile(string(f), []byte(`{"deed":"denied","server":"files","runs":"npm:files","uri":"file:///x"}`+"\n"), 0o600)
		},
		"no directory": func(f File) error {
			return os.WriteFile(string(f), []byte(`{"deed":"allowed","server":"files","runs":"npm:files","uri":"x"}`+"\n"), 0o600)
		},
	} {
		f := newFile(t)
		must(t, f.Allow(files, "/a"), f.Allow(files, "/b"), damage(f))
		dirs, changed, err := f.Watch(files).Changed()
		if dirs != nil || !changed || err == nil || !strings.Contains(err.Error(), "consents.jsonl:") {
			t.Errorf("%s: %q, %v, %v", name, dirs, changed, err)
		}
	}
}

func TestAFileThatOthersMayWrite(t *testing.T) {
	f := newFile(t)
	must(t, f.Allow(files, "/a"), os.Chmod(string(f), 0o666))
	entries, err := f.Entries()
	if runtime.GOOS != "windows" && (entries != nil || err == nil) {
		t.Errorf("%v, %v", entries, err)
	}
}

// Several guards and commands write at once, and no line is lost.
func TestAtOnce(t *testing.T) {
	f := newFile(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := f.Allow(files, fmt.Sprintf("/%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(said(t, f)); n != 50 {
		t.Errorf("%d of 50 hold", n)
	}
}
