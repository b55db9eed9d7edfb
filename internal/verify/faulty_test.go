package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/fsserver"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/verify"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// A faulty server is our own, with one thing that it does in a way that servers do it.
type faulty struct {
	next  exchange.Handler
	roots []string
	dir   string // its working directory
	fault fault
}

// fault is what is planted.
type fault struct {
	// does are the operations that are done naively, and how they find the file of a path: it returns what is opened.
	does    []string
	find    func(f *faulty, path string) (string, error)
	follows bool // links are followed in walks
	inPlace bool // a file is written where it is, whatever other names it has
	hangs   bool // some calls are never answered
	slow    bool // between a look and the use there is a moment
	// call, request and answer, if set, do something else with a call, a request, or a result.
	call    func(f *faulty, tool string, args map[string]any) (text string, done bool, err error)
	request func(f *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool
	answer  func(method string, result []byte) []byte
	// list is put between the server and the client's list of roots.
	list func(f *faulty, list []byte) []byte
	deaf bool // it never asks for roots
	set  func(dirs []roots.Dir) []roots.Dir
}

var errOutside = errors.New("access denied")

// inside reports whether a clean path is one of the roots or beneath one.
func (f *faulty) inside(path string) bool {
	for _, r := range f.roots {
		if path == r || strings.HasPrefix(path, r+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// real is where a path leads, by what of it is there; "" for a loop.
func real(path string) string {
	hops := 0
	return follow(path, &hops)
}

func follow(path string, hops *int) string {
	if *hops++; *hops > 40 {
		return ""
	}
	for rest := ""; ; {
		if r, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(r, rest)
		}
		if to, err := os.Readlink(path); err == nil { // it leads to nothing
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			return filepath.Join(follow(to, hops), rest)
		}
		if path == filepath.Dir(path) {
			return filepath.Join(path, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = filepath.Dir(path)
	}
}

// sound finds a file as it should be found, but for races.
func sound(f *faulty, path string) (string, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) || len(path) > 4096 {
		return "", errOutside
	}
	if p := real(filepath.Clean(path)); f.inside(p) && real(path) == p {
		return p, nil
	}
	return "", errOutside
}

// through changes a path after it was checked by the letter, and holds what comes of it to nothing.
func through(change func(string) string) func(f *faulty, path string) (string, error) {
	return func(f *faulty, path string) (string, error) {
		if change(path) == path {
			return sound(f, path)
		}
		if clean := filepath.Clean(path); f.inside(clean) {
			return change(path), nil
		}
		return "", errOutside
	}
}

var finds = map[string]func(f *faulty, path string) (string, error){
	"sound": sound,
	"tilde": func(f *faulty, path string) (string, error) {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			home, err := os.UserHomeDir()
			return filepath.Join(home, rest), err
		}
		return sound(f, path)
	},
	// A slash behind says that it is a directory, and those are not looked at.
	"slash": func(f *faulty, path string) (string, error) {
		if clean := filepath.Clean(path); strings.HasSuffix(path, "/") && f.inside(clean) {
			return clean, nil
		}
		return sound(f, path)
	},
	"nothing": func(_ *faulty, path string) (string, error) {
		if !filepath.IsAbs(path) || len(path) > 4096 {
			return "", errOutside
		}
		return path, nil
	},
	// The path begins with the root's name.
	"prefix": func(f *faulty, path string) (string, error) {
		if !filepath.IsAbs(path) || len(path) > 4096 {
			return "", errOutside
		}
		p := real(filepath.Clean(path))
		for _, r := range f.roots {
			if strings.HasPrefix(p, r) && real(path) == p {
				return p, nil
			}
		}
		return "", errOutside
	},
	// Dots are not taken out before it is compared.
	"dots": func(f *faulty, path string) (string, error) {
		for _, r := range f.roots {
			if strings.HasPrefix(path, r+"/") && len(path) < 4096 && (strings.Contains(path, "..") || f.inside(real(path))) {
				return path, nil
			}
		}
		return "", errOutside
	},
	// Links are not looked at.
	"lexical": func(f *faulty, path string) (string, error) {
		if p := filepath.Clean(path); f.inside(p) {
			return p, nil
		}
		return "", errOutside
	},
	"trims": func(f *faulty, path string) (string, error) {
		if _, err := sound(f, strings.TrimSpace(path)); err != nil {
			for _, r := range f.roots {
				for _, c := range []string{" ", "\n"} {
					if rest, ok := strings.CutPrefix(path, r+c); ok && (rest == "" || rest[0] == '/') {
						return path, nil
					}
				}
			}
			return "", errOutside
		}
		return path, nil
	},
	"quotes": func(f *faulty, path string) (string, error) {
		if _, err := sound(f, strings.ReplaceAll(path, "'", "")); err != nil {
			return "", err
		}
		return path, nil
	},
	"decoded": through(func(p string) string { s, err := url.PathUnescape(p); return pick(err == nil, s, p) }),
	"decoded twice": through(func(p string) string {
		s, err := url.PathUnescape(p)
		if err == nil {
			s, err = url.PathUnescape(s)
		}
		return pick(err == nil, s, p)
	}),
	"compatible": through(norm.NFKC.String),
	"backslash":  through(func(p string) string { return strings.ReplaceAll(p, `\`, "/") }),
	"spaces":     through(func(p string) string { return strings.ReplaceAll(p, ".. ", "..") }),
	"composed": func(f *faulty, path string) (string, error) {
		if p, err := sound(f, path); err == nil {
			if _, err := os.Lstat(path); err == nil {
				return p, nil
			}
			return norm.NFD.String(path), nil
		}
		return "", errOutside
	},
	"case": func(f *faulty, path string) (string, error) {
		if p, err := sound(f, path); err == nil {
			return p, nil
		}
		for _, r := range f.roots {
			if !f.inside(path) && len(path) >= len(r) && strings.EqualFold(path[:len(r)], r) && (len(path) == len(r) || path[len(r)] == '/') && filepath.Clean(path) == path {
				return path, nil
			}
		}
		return "", errOutside
	},
	"uri": func(f *faulty, path string) (string, error) {
		if u, err := url.Parse(path); err == nil && u.Scheme == "file" {
			return u.Path, nil
		}
		return sound(f, path)
	},
	"nul": func(f *faulty, path string) (string, error) {
		if before, _, cut := strings.Cut(path, "\x00"); cut {
			return before, nil
		}
		return sound(f, path)
	},
	"cwd": func(f *faulty, path string) (string, error) {
		if !filepath.IsAbs(path) {
			return filepath.Join(f.dir, path), nil
		}
		return sound(f, path)
	},
	"proc": func(f *faulty, path string) (string, error) {
		if strings.HasPrefix(path, "/proc/") {
			return path, nil
		}
		return sound(f, path)
	},
	// What of a path is there decides, and the rest is taken out of it later.
	"part": func(f *faulty, path string) (string, error) {
		if !filepath.IsAbs(path) || len(path) > 4096 {
			return "", errOutside
		}
		part := path
		for _, err := os.Lstat(part); err != nil && part != "/"; _, err = os.Lstat(part) {
			part = strings.TrimRight(part[:max(1, strings.LastIndexByte(part, '/'))], "/")
			if part == "" {
				part = "/"
			}
		}
		if !f.inside(real(part)) {
			return "", errOutside
		}
		return filepath.Clean(path), nil
	},
	"resolved": func(f *faulty, path string) (string, error) {
		if clean := filepath.Clean(path); f.inside(clean) && len(path) < 4096 {
			if p := real(clean); p != "" {
				return p, nil
			}
		}
		return "", errOutside
	},
	// It is checked, and opened a moment later.
	"race": func(f *faulty, path string) (string, error) {
		_, err := sound(f, path)
		time.Sleep(50 * time.Microsecond)
		return path, err
	},
	// A link that leads to nothing is taken for a name that is free.
	"dangling": func(f *faulty, path string) (string, error) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
				if p, err := filepath.EvalSymlinks(dir); err == nil {
					if f.inside(p) {
						return filepath.Clean(path), nil
					}
					return "", errOutside
				} else if dir == filepath.Dir(dir) {
					return "", errOutside
				}
			}
		}
		return sound(f, path)
	},
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func str(args map[string]any, name string) string { s, _ := args[name].(string); return s }

// stat looks at what a walk meets.
func (f *faulty) stat(path string) (fs.FileInfo, error) {
	if f.fault.follows {
		return os.Stat(path)
	}
	info, err := os.Lstat(path)
	if f.fault.slow {
		time.Sleep(50 * time.Microsecond)
	}
	return info, err
}

// write writes a file: as a new one in the place of the old, or into the old one.
func (f *faulty) write(path, content string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && !f.fault.inPlace {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

// naive does an operation with plain calls of the system.
func (f *faulty) naive(tool string, args map[string]any) (string, error) {
	find := func(name string) (string, error) {
		path, ok := args[name].(string)
		if !ok {
			return "", fmt.Errorf("%s is missing", name)
		}
		return f.fault.find(f, path)
	}
	path, err := "", error(nil)
	if tool != "read_multiple_files" && tool != "move_file" && tool != "copy_file" {
		if path, err = find("path"); err != nil {
			return "", err
		}
	}
	regular := func(path string) error {
		if info, err := os.Stat(path); err != nil {
			return err
		} else if !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return errors.New("not a file that can be read")
		}
		return nil
	}
	read := func(path string) (string, error) {
		if err := regular(path); err != nil {
			return "", errors.New("cannot be read")
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return "", errors.New("cannot be read")
		}
		return string(b), nil
	}
	plain := func(err error) (string, error) {
		if err != nil {
			return "", errors.New("it failed")
		}
		return "done", nil
	}
	switch tool {
	case "read_text_file", "read_media_file":
		return read(path)
	case "read_multiple_files":
		var all []string
		list, _ := args["paths"].([]any)
		for _, p := range list {
			s, _ := p.(string)
			if s, err = f.fault.find(f, s); err == nil {
				s, err = read(s)
			}
			if err != nil {
				s = "refused"
			}
			all = append(all, s)
		}
		return strings.Join(all, "\n"), nil
	case "list_directory", "list_directory_with_sizes":
		entries, err := os.ReadDir(path)
		if err != nil {
			return plain(err)
		}
		var names []string
		for _, e := range entries {
			name := e.Name()
			if tool == "list_directory_with_sizes" {
				if info, err := f.stat(filepath.Join(path, name)); err == nil {
					name += fmt.Sprintf(" %d", info.Size())
				}
			}
			names = append(names, name)
		}
		return strings.Join(names, "\n"), nil
	case "directory_tree", "search_files", "search_content":
		var names []string
		var walk func(dir string, depth int)
		walk = func(dir string, depth int) {
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				at := filepath.Join(dir, e.Name())
				names = append(names, at)
				if tool == "search_content" {
					if s, err := read(at); err == nil && strings.Contains(s, str(args, "pattern")) && (f.fault.follows || e.Type().IsRegular()) {
						names = append(names, s)
					}
				}
				if info, err := f.stat(at); err == nil && info.IsDir() && depth < 3 && len(names) < 1000 {
					walk(at, depth+1)
				}
			}
		}
		walk(path, 0)
		return strings.Join(names, "\n"), nil
	case "get_file_info":
		info, err := os.Stat(path)
		if err != nil {
			return plain(err)
		}
		return fmt.Sprintf("size: %d\nmodified: %s", info.Size(), info.ModTime().UTC()), nil
	case "write_file":
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return "", errors.New("no file")
		}
		os.MkdirAll(filepath.Dir(path), 0o755)
		return plain(f.write(path, str(args, "content")))
	case "append_file":
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return "", errors.New("no file")
		}
		w, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = w.WriteString(str(args, "content"))
			err = errors.Join(err, w.Close())
		}
		return plain(err)
	case "edit_file":
		s, err := read(path)
		if err != nil {
			return "", err
		}
		edits, _ := args["edits"].([]any)
		for _, e := range edits {
			m, _ := e.(map[string]any)
			if !strings.Contains(s, str(m, "oldText")) {
				return "", errors.New("not found")
			}
			s = strings.Replace(s, str(m, "oldText"), str(m, "newText"), 1)
		}
		return plain(f.write(path, s))
	case "create_directory":
		return plain(os.MkdirAll(path, 0o755))
	case "delete_path":
		if slices.Contains(f.roots, filepath.Clean(path)) {
			return "", errOutside
		}
		return plain(os.Remove(path))
	case "move_file", "copy_file":
		from, err := find("source")
		if err != nil {
			return "", err
		}
		to, err := find("destination")
		if err != nil {
			return "", err
		}
		if tool == "move_file" {
			return plain(os.Rename(from, to))
		}
		s, err := read(from)
		if err == nil {
			err = os.WriteFile(to, []byte(s), 0o644)
		}
		return plain(err)
	}
	return "", errors.New("no such tool")
}

// Handle implements exchange.Handler.
func (f *faulty) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if f.fault.request != nil && f.fault.request(f, r, reply) {
		return
	}
	if r.Msg.Method() == "tools/call" {
		tool := wire.GetString(r.Msg.Params(), "name")
		raw, _ := wire.Get(r.Msg.Params(), "arguments")
		var args map[string]any
		json.Unmarshal(raw, &args)
		if f.fault.call != nil {
			if text, done, err := f.fault.call(f, tool, args); done {
				answer(r, text, err, reply)
				return
			}
		}
		for _, t := range f.fault.does {
			if t == tool {
				f.effective(ctx, r, func(dirs []string) {
					now := *f
					now.roots = dirs
					go func() {
						text, err := now.naive(tool, args)
						answer(r, text, err, reply)
					}()
				})
				return
			}
		}
	}
	next := reply
	if f.fault.answer != nil && r.Msg.Kind() == wire.Request {
		next = func(o exchange.Outcome) {
			if o.Msg != nil && o.Msg.Result() != nil {
				o.Msg = wire.NewResult(o.Msg.ID(), f.fault.answer(r.Msg.Method(), o.Msg.Result()))
			}
			reply(o)
		}
	}
	f.next.Handle(ctx, r, next)
}

// effective finds what holds for a request: the sound server asks for it.
func (f *faulty) effective(ctx context.Context, r *exchange.Request, then func(dirs []string)) {
	params := wire.SetMember(wire.SetMember(r.Msg.Params(), []byte(`"list_allowed_directories"`), "name"), []byte("{}"), "arguments")
	f.next.Handle(ctx, r.With(wire.NewRequest(exchange.NewID(), "tools/call", params)), func(o exchange.Outcome) {
		var dirs []string
		content, _ := wire.Get(o.Msg.Result(), "content")
		for part := range wire.Items(content) {
			for line := range strings.SplitSeq(wire.GetString(part, "text"), "\n") {
				if filepath.IsAbs(line) {
					dirs = append(dirs, line)
				}
			}
		}
		then(dirs)
	})
}

func answer(r *exchange.Request, text string, err error, reply func(exchange.Outcome)) {
	failed := ""
	if err != nil {
		text, failed = "refused: "+err.Error(), `,"isError":true`
	}
	result := fmt.Sprintf(`{"content":[{"type":"text","text":%s}]%s`, wire.Quote(text), failed)
	if r.Era == exchange.Modern {
		result += `,"resultType":"complete"`
	}
	reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), []byte(result+"}"))})
}

// listed puts something between a server and the list of roots that a client answers with.
type listed struct {
	exchange.Caller
	f *faulty
}

func (l listed) Ask(ctx context.Context, q []exchange.Question, answer func([]exchange.Answer)) {
	l.Caller.Ask(ctx, q, func(a []exchange.Answer) {
		for i := range a {
			if a[i].Result != nil && q[i].Method == "roots/list" {
				a[i].Result = l.f.fault.list(l.f, a[i].Result)
			}
		}
		answer(a)
	})
}

// start starts a server with a fault in this process.
func start(f fault) func(ctx context.Context, s verify.Setup) (verify.Running, error) {
	return func(_ context.Context, s verify.Setup) (verify.Running, error) {
		var dirs []roots.Dir
		for _, dir := range s.Roots {
			d, err := roots.Resolve(dir, roots.ResolveOptions{Access: roots.ReadWrite | roots.Delete})
			if err != nil {
				return verify.Running{}, err
			}
			dirs = append(dirs, d)
		}
		if f.set != nil {
			dirs = f.set(dirs)
		}
		mode := roots.Narrow
		if f.deaf {
			mode = roots.Ignore
		}
		files := fsserver.New(fsserver.Options{Name: "files", Version: "1"})
		g := guard.New(guard.Options{Server: "files", Configured: roots.NewSet(dirs...), ClientRoots: mode})
		fy := &faulty{next: g.WrapContained(files), roots: s.Roots, dir: s.Dir, fault: f}
		var h exchange.Handler = fy
		if f.list != nil {
			h = exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
				if r.Caller != nil {
					c := *r
					c.Caller = listed{r.Caller, fy}
					r = &c
				}
				fy.Handle(ctx, r, reply)
			})
		}
		return verify.Running{Handler: h, Close: files.Close}, nil
	}
}
