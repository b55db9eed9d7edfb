package fsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// naive is a server as many are: it checks a path and then opens it. It is here to be caught: a battery that it passes, or a
// race that it wins, proves nothing.
type naive struct {
	roots []string
	// resolve follows the links of a path before it is checked. Then only a race, or what does not exist yet, is open.
	resolve bool
}

func newNaive(c *trial, resolve bool) exchange.Handler {
	return exchange.Work(naive{[]string{c.w + "/R", c.w + "/S"}, resolve}.answer)
}

// check checks a path that was made nice for the check, and for nothing else.
func (n naive) check(path string) error {
	nice := filepath.Clean(strings.Trim(strings.TrimSpace(path), `"'`))
	if n.resolve {
		if real, err := filepath.EvalSymlinks(nice); err == nil {
			nice = real
		}
	}
	for _, root := range n.roots {
		if strings.HasPrefix(nice, root) {
			return nil
		}
	}
	return fmt.Errorf("%s is not allowed", path)
}

func (n naive) answer(_ context.Context, r *exchange.Request) exchange.Outcome {
	var call struct {
		Name      string
		Arguments struct {
			Path, Source, Destination, Content, Pattern string
			Paths                                       []string
			Edits                                       []struct{ OldText, NewText string }
		}
	}
	if err := json.Unmarshal(r.Msg.Params(), &call); err != nil {
		return exchange.Fail(r, wire.CodeInvalidParams, err.Error(), nil)
	}
	a := call.Arguments
	paths := slices.DeleteFunc([]string{a.Path, a.Source, a.Destination}, func(s string) bool { return s == "" })
	var text string
	var err error
	for i, p := range paths {
		p = strings.TrimPrefix(p, "file://")
		if !filepath.IsAbs(p) {
			p, _ = filepath.Abs(p)
		}
		if err == nil {
			err = n.check(p)
		}
		paths[i] = p
	}
	if err == nil {
		text, err = n.do(call.Name, paths, a.Content, a.Pattern, a.Paths, func(s string) string {
			for _, e := range a.Edits {
				s = strings.Replace(s, e.OldText, e.NewText, 1)
			}
			return s
		})
	}
	if err != nil {
		return exchange.Result(r, []byte(`{"content":[{"type":"text","text":`+string(wire.Quote(err.Error()))+`}],"isError":true}`))
	}
	return exchange.Result(r, []byte(`{"content":[{"type":"text","text":`+string(wire.Quote(text))+`}]}`))
}

func (n naive) do(tool string, paths []string, content, pattern string, many []string, change func(string) string) (string, error) {
	path := "/"
	if len(paths) > 0 {
		path = paths[0]
	}
	switch tool {
	case "read_text_file", "read_media_file":
		text, err := os.ReadFile(path)
		return string(text), err
	case "read_multiple_files":
		var texts []string
		for _, p := range many {
			if err := n.check(p); err != nil {
				texts = append(texts, err.Error())
				continue
			}
			text, err := os.ReadFile(p)
			texts = append(texts, fmt.Sprint(string(text), err))
		}
		return strings.Join(texts, "\n"), nil
	case "list_directory", "list_directory_with_sizes":
		entries, err := os.ReadDir(path)
		var b strings.Builder
		for _, e := range entries {
			size := int64(0)
			if info, err := os.Stat(filepath.Join(path, e.Name())); err == nil {
				size = info.Size()
			}
			fmt.Fprintln(&b, e.Name(), size)
		}
		return b.String(), err
	case "get_file_info":
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(info.Size(), info.ModTime()), nil
	case "write_file":
		return "", os.WriteFile(path, []byte(content), 0o644)
	case "edit_file":
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return string(text), os.WriteFile(path, []byte(change(string(text))), 0o644)
	case "create_directory":
		return "", os.MkdirAll(path, 0o755)
	case "move_file":
		return "", os.Rename(path, paths[1])
	case "directory_tree", "search_files":
		var names []string
		n.follow(path, 0, func(p string) { names = append(names, p) })
		return strings.Join(names, "\n"), nil
	}
	return "", fmt.Errorf("there is no tool %q", tool)
}

// follow visits all beneath a directory, through links.
func (n naive) follow(dir string, depth int, visit func(path string)) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		visit(path)
		if info, err := os.Stat(path); depth < 3 && err == nil && info.IsDir() && e.Type()&^fs.ModeSymlink&fs.ModeType&^fs.ModeDir == 0 {
			n.follow(path, depth+1, visit)
		}
	}
}

// A server that checks a path by its text fails these attempts, and one that follows its links first fails those.
func TestTheBatteryCatchesANaiveServer(t *testing.T) {
	if os.Geteuid() == 0 {
		inEveryVariant(t, []variant{{name: "naive as nobody", other: true}}, func(t *testing.T, _ variant) { catchNaive(t) })
		return
	}
	catchNaive(t)
}

func catchNaive(t *testing.T) {
	for _, tt := range []struct {
		resolve bool
		fails   string
	}{
		{false, "E12 E13 E14 E15 E16 E17 E18 E19 E53 E54 E55 E56 E58 E59 E63 E66 E67 E68 E70 E71 E72 E74 E76 E78 E80 E82 E83 E85 E87 E88 E95 E96 E124 E131 E133 E134"},
		{true, "E12 E13 E14 E15 E16 E17 E18 E19 E63 E67 E71 E72 E74 E78 E82 E83 E87 E88 E95 E124 E131 E133 E134"},
	} {
		var fails []string
		for _, a := range battery {
			if ours := a.files.StrictLinks || a.files.NoMounts; a.waits || a.once || ours {
				continue
			}
			if faults := attempted(t, a, exchange.Legacy, func(c *trial) exchange.Handler { return newNaive(c, tt.resolve) }); len(faults) > 0 {
				fails = append(fails, a.id)
			}
		}
		if diff := cmp.Diff(strings.Fields(tt.fails), fails); diff != "" {
			t.Errorf("resolving links %v, it fails (-want +got):\n%s\n%s", tt.resolve, diff, strings.Join(fails, " "))
		}
	}
}
