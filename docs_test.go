package rootbound_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/cli"
	"github.com/rootbound/rootbound/internal/config"
)

// translated are the pages that have one in Chinese beside them, NAME.zh-CN.md.
var translated = []string{"README", "docs/troubleshooting"}

// The two pages of a pair are kept together by what a machine can compare: what stands in their blocks of code, without
// the remarks, which are translated.
func TestTranslationsHaveTheSameCommands(t *testing.T) {
	for _, name := range translated {
		want, got := code(t, name+".md"), code(t, name+".zh-CN.md")
		if len(want) == 0 {
			t.Errorf("%s.md has no block of code", name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("code in %s.md and %s.zh-CN.md (-md +zh-CN.md):\n%s", name, name, diff)
		}
	}
}

func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	n := 0
	for _, name := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			n++
			to, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue
			}
			page := name
			if to != "" {
				page = filepath.Join(filepath.Dir(name), filepath.FromSlash(to))
			}
			if _, err := os.Stat(page); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
				continue
			}
			if fragment != "" && !headings(read(t, page))[fragment] {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
		}
	}
	atLeast(t, 50, n, "links")
}

// atLeast fails a test that has found so little to look at that it says nothing.
func atLeast(t *testing.T, want, got int, what string) {
	t.Helper()
	if got < want {
		t.Errorf("%d %s were found, want %d at least: are they written in another way now?", got, what, want)
	}
}

// The whole programs of the page for programmers are such, and do what the page says.
func TestProgramsRun(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out.txt")
	if err := os.Mkdir(in, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{out, filepath.Join(in, "a.txt")} {
		if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for _, b := range blocks(t, "docs/library.md") {
		if b.language != "go" || b.lines[0] != "package main" {
			continue
		}
		found++
		program := filepath.Join(dir, "main.go")
		if err := os.WriteFile(program, []byte(strings.Join(b.lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "run", program, in, "a.txt", out)
		cmd.Stderr = os.Stderr
		got, err := cmd.Output()
		if err != nil || !strings.HasPrefix(string(got), "a.txt: \"text\", <nil>\n") || !strings.Contains(string(got), "outside the roots") {
			t.Errorf("%v\n%s", err, got)
		}
	}
	if found != 1 {
		t.Errorf("there are %d programs", found)
	}
}

// What the pages show of a configuration file is one.
func TestConfigurationsAreRead(t *testing.T) {
	n := 0
	for _, name := range pages(t) {
		for _, b := range blocks(t, name) {
			text := strings.Join(b.lines, "\n")
			if b.language != "toml" && (b.language != "json" || strings.Contains(text, `"jsonrpc"`)) {
				continue
			}
			n++
			if _, err := config.Parse(filepath.Join(t.TempDir(), "rootbound."+b.language), []byte(text)); err != nil {
				t.Errorf("%s shows a configuration that is refused: %v\n%s", name, err, text)
			}
		}
	}
	atLeast(t, 10, n, "configurations")
}

// pages are all pages of the project, from its root.
func pages(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "node_modules"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// block is a block of code of a page: its language, and its lines.
type block struct {
	language string
	lines    []string
}

func blocks(t *testing.T, name string) []block {
	t.Helper()
	var all []block
	inside := false
	for line := range strings.Lines(read(t, name)) {
		line = strings.TrimRight(line, "\r\n")
		if info, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			if inside = !inside; inside {
				all = append(all, block{language: info})
			}
		} else if inside {
			b := &all[len(all)-1]
			b.lines = append(b.lines, line)
		}
	}
	if inside {
		t.Errorf("%s has a block of code without an end", name)
	}
	return all
}

// code returns what is for a shell or a file in the blocks of code of a page, without blank lines and remarks.
func code(t *testing.T, name string) []string {
	t.Helper()
	var lines []string
	remark := regexp.MustCompile(`(^|\s+)(#|//)\s.*$`)
	for _, b := range blocks(t, name) {
		if b.language == "text" {
			continue
		}
		for _, line := range b.lines {
			if line = remark.ReplaceAllString(line, ""); strings.TrimSpace(line) != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// headings are the fragments that the headings of a page can be linked by.
func headings(text string) map[string]bool {
	found := map[string]bool{}
	drop := regexp.MustCompile(`[^\pL\pN _-]`)
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			title = drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			found[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the pages say to type is there: each command, and each option of ours.
func TestCommandsExist(t *testing.T) {
	inline := regexp.MustCompile("`((?:rootbound |--)[^`]*)`")
	n := 0
	for _, name := range pages(t) {
		lines := code(t, name)
		for _, m := range inline.FindAllStringSubmatch(read(t, name), -1) {
			lines = append(lines, m[1])
		}
		for _, line := range lines {
			words := strings.Fields(line)
			switch {
			case len(words) == 0:
			case words[0] == "rootbound":
				n++
				checkCommand(t, name, words[1:])
			case strings.HasPrefix(line, "go run ./cmd/rootbound "):
				checkCommand(t, name, words[3:])
			case strings.HasPrefix(words[0], "--") && len(words[0]) > 2:
				checkCommand(t, name, append([]string{"run"}, words...))
			}
		}
	}
	atLeast(t, 100, n, "command lines")
}

// checkCommand checks a command line without the program's name. In the pages it may show choices (list|add) and
// placeholders.
func checkCommand(t *testing.T, page string, words []string) {
	t.Helper()
	line := strings.Join(words, " ")
	if own, _, ok := strings.Cut(line+" ", " -- "); ok {
		words = strings.Fields(own)
	}
	text := help(t)
	var commands []string
	for len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		var deeper string
		for choice := range strings.SplitSeq(strings.ReplaceAll(words[0], `\|`, "|"), "|") {
			if !regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(choice) + ` `).MatchString(text) {
				deeper = ""
				break
			}
			deeper = choice
		}
		if deeper == "" {
			break // an argument
		}
		commands = append(commands, deeper)
		text = help(t, commands...)
		words = words[1:]
	}
	if len(commands) == 0 && len(words) > 0 && words[0] != "--help" && words[0] != "--help-all" {
		t.Errorf("%s: rootbound %s: there is no such command", page, line)
		return
	}
	for _, w := range words {
		flag, _, _ := strings.Cut(w, "=")
		if strings.HasPrefix(flag, "--") && !regexp.MustCompile(`(?m)(^|[\s,])`+regexp.QuoteMeta(flag)+`(\s|$)`).MatchString(text) {
			t.Errorf("%s: rootbound %s: there is no option %s", page, line, flag)
		}
	}
}

// help returns all help of a command.
func help(t *testing.T, commands ...string) string {
	t.Helper()
	for _, flag := range []string{"--help-all", "--help"} {
		var out, errs strings.Builder
		if cli.Main(append(slices.Clone(commands), flag), strings.NewReader(""), &out, &errs) == 0 {
			return out.String()
		}
	}
	t.Fatalf("rootbound %s has no help", strings.Join(commands, " "))
	return ""
}
