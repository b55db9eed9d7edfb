package ui

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/roots"
)

// files are those of the page with an ending, by name.
func files(t *testing.T, ending string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(web, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ending) {
			return err
		}
		text, err := web.ReadFile(name)
		all[name] = string(text)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("no file of the page ends in %s: %v", ending, err)
	}
	return all
}

var (
	row         = regexp.MustCompile(`(?m)^  "([^"]+)": \["((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)"\],$`)
	placeholder = regexp.MustCompile(`\{\w+\}`)
	chinese     = regexp.MustCompile(`\p{Han}`)
)

// The texts of the page are complete: in both languages, with the same to fill in, and each that is used is there.
func TestTexts(t *testing.T) {
	modules := files(t, ".js")
	tables := map[string]map[string]bool{}
	for name, text := range modules {
		if !strings.HasSuffix(name, ".text.js") {
			continue
		}
		keys := map[string]bool{}
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			key, en, zh := m[1], m[2], m[3]
			if keys[key] {
				t.Errorf("%s has %q twice", name, key)
			}
			keys[key] = true
			if en == "" || zh == "" {
				t.Errorf("%s: %q is empty in a language", name, key)
			}
			if chinese.MatchString(en) || !chinese.MatchString(zh) && regexp.MustCompile(`[a-z]{3}`).MatchString(placeholder.ReplaceAllString(zh, "")) {
				t.Errorf("%s: %q is not translated: %q, %q", name, key, en, zh)
			}
			in := func(s string) (n map[string]bool) {
				n = map[string]bool{}
				for _, p := range placeholder.FindAllString(s, -1) {
					n[p] = true
				}
				return n
			}
			if a, b := in(en), in(zh); len(a) != len(b) {
				t.Errorf("%s: %q fills in %v and %v", name, key, a, b)
			}
		}
		if n := strings.Count(text, "\n  \""); n != len(keys) {
			t.Errorf("%s has %d lines of texts, %d of which can be read", name, n, len(keys))
		}
		tables[name] = keys
	}
	imported := regexp.MustCompile(`(?m)^import \w+ from "([^"]+\.text\.js)";$`)
	// A key is written out; one that is put together begins with a part that is: t("state." + x).
	use := regexp.MustCompile(`\bt\("([^"]+)"( \+)?`)
	either := regexp.MustCompile(`\bt\([^"\n]*\? "([^"]+)" : "([^"]+)"`)
	used := map[string]bool{}
	for name, text := range modules {
		var keys []map[string]bool
		var of []string
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			table := path.Join(path.Dir(name), m[1])
			if tables[table] == nil {
				t.Errorf("%s imports %s, which is not there", name, table)
			}
			keys, of = append(keys, tables[table]), append(of, table)
		}
		uses := use.FindAllStringSubmatch(text, -1)
		for _, m := range either.FindAllStringSubmatch(text, -1) {
			uses = append(uses, []string{"", m[1], ""}, []string{"", m[2], ""})
		}
		for _, m := range uses {
			found := false
			for i, table := range keys {
				for key := range table {
					if key == m[1] || m[2] != "" && strings.HasPrefix(key, m[1]) {
						found, used[of[i]+" "+key] = true, true
					}
				}
			}
			if !found {
				t.Errorf("%s uses the text %q, which is not in %v", name, m[1], of)
			}
		}
	}
	for name, keys := range tables {
		for key := range keys {
			if !used[name+" "+key] {
				t.Errorf("%s: nothing uses %q", name, key)
			}
		}
	}
}

// Nothing of the page is written as markup, and nothing is fetched from elsewhere.
func TestModulesMakeText(t *testing.T) {
	for name, text := range files(t, ".js") {
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser", "createContextualFragment", "http://", "https://", ".style=", "cssText"} {
			if strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), word) {
				t.Errorf("%s has %q", name, word)
			}
		}
	}
	for name, text := range files(t, ".css") {
		if strings.Contains(text, "url(") || strings.Contains(text, "@import") {
			t.Errorf("%s fetches something", name)
		}
	}
	index := files(t, "index.html")["web/index.html"]
	if regexp.MustCompile(`(?i)<style|\sstyle=|\son\w+=|<script(?:[^>]*)>[^<]`).MatchString(index) {
		t.Error("the document has a script or a style in it")
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="/(web/[^"]+)"`).FindAllStringSubmatch(index, -1) {
		if _, err := web.ReadFile(m[1]); err != nil {
			t.Errorf("the document names %s: %v", m[1], err)
		}
	}
}

// What guards tell by a code has a text for it.
func TestCodesHaveTexts(t *testing.T) {
	table := files(t, "codes.text.js")["web/lib/codes.text.js"]
	var keys []string
	for s := config.FromNowhere; s <= config.FromWorkspace; s++ {
		keys = append(keys, "source."+s.Code())
	}
	for _, reason := range []roots.Reason{roots.Missing, roots.Unopenable, roots.WrongKind, roots.Moved} {
		keys = append(keys, "root."+string(reason))
	}
	for _, code := range []string{calllog.CodeOutside, calllog.CodeNoRoots, calllog.CodeReadOnly, guard.CodeOwn} {
		keys = append(keys, "refused."+code)
	}
	for why := pathargs.ByRule; why <= pathargs.NotPossible; why++ {
		keys = append(keys, "found."+why.String())
	}
	for _, key := range keys {
		if !strings.Contains(table, "\n  \""+key+"\": ") {
			t.Errorf("there is no text for %s", key)
		}
	}
}
