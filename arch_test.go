package rootbound_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/rootbound/rootbound"

// room is a package of ours.
type room struct {
	imports []string // what of ours it may import, from the module's root; the standard library and go.mod are free
	guards  bool     // it holds a boundary, so its comment says under "# Limits" what it does not stop
}

// rooms is the plan of the house: docs/design.md tells what each room is for. It has every package there is. The commands,
// which put everything together, may import whatever is in it, except what is for tests.
var rooms = map[string]room{
	"roots":               {guards: true},
	"rootfs":              {guards: true, imports: []string{"roots"}},
	"internal/wire":       {guards: true},
	"internal/splice":     {},
	"internal/calllog":    {guards: true},
	"internal/consent":    {guards: true, imports: []string{"internal/statefile", "roots"}},
	"internal/policy":     {guards: true, imports: []string{"internal/wire", "roots"}},
	"internal/unseen":     {guards: true},
	"internal/results":    {guards: true, imports: []string{"internal/unseen", "internal/wire"}},
	"internal/statefile":  {guards: true},
	"internal/pin":        {guards: true, imports: []string{"internal/statefile", "internal/unseen", "internal/wire"}},
	"internal/approval":   {guards: true, imports: []string{"internal/statefile", "internal/unseen"}},
	"internal/exchange":   {imports: []string{"internal/wire", "roots"}},
	"internal/legacy":     {guards: true, imports: []string{"internal/exchange", "internal/wire"}},
	"internal/modern":     {guards: true, imports: []string{"internal/exchange", "internal/wire"}},
	"internal/bridge":     {imports: []string{"internal/exchange", "internal/wire"}},
	"internal/launch":     {guards: true, imports: []string{"roots"}},
	"internal/sandbox":    {guards: true, imports: []string{"roots"}},
	"internal/egress":     {guards: true},
	"internal/clientconf": {imports: []string{"internal/launch", "internal/splice", "internal/statefile", "roots"}},
	"internal/doctor":     {imports: []string{"internal/calllog", "internal/clientconf", "internal/launch", "internal/splice", "roots"}},
	"internal/config":     {imports: []string{"internal/launch", "internal/policy", "internal/results", "internal/splice", "internal/statefile", "roots"}},
	"internal/pathargs":   {guards: true, imports: []string{"internal/launch", "internal/wire", "rootfs", "roots"}},
	"internal/transport":  {guards: true, imports: []string{"internal/bridge", "internal/exchange", "internal/legacy", "internal/modern", "internal/sandbox", "internal/wire"}},
	"internal/oauth":      {guards: true, imports: []string{"internal/statefile"}},
	"internal/streamable": {guards: true, imports: []string{"internal/exchange", "internal/legacy", "internal/modern", "internal/transport", "internal/wire"}},
	"internal/guard":      {guards: true, imports: []string{"internal/approval", "internal/calllog", "internal/consent", "internal/exchange", "internal/launch", "internal/pathargs", "internal/pin", "internal/policy", "internal/results", "internal/wire", "rootfs", "roots"}},
	"internal/fsserver":   {guards: true, imports: []string{"internal/exchange", "internal/wire", "rootfs", "roots"}},
	"internal/demo":       {imports: []string{"internal/calllog", "internal/exchange", "internal/fsserver", "internal/guard", "internal/sandbox", "internal/transport", "internal/wire", "rootfs", "roots"}},
	"internal/verify":     {imports: []string{"internal/exchange", "internal/unseen", "internal/wire", "roots"}},
	"internal/logindex":   {guards: true, imports: []string{"internal/calllog"}},
	"internal/ui":         {guards: true, imports: []string{"internal/approval", "internal/calllog", "internal/config", "internal/consent", "internal/guard", "internal/logindex", "internal/pin", "internal/unseen", "roots"}},
	"internal/cli":        {imports: []string{"*"}},
	"cmd/rootbound":       {imports: []string{"internal/cli"}},
	"internal/mcptest":    {imports: []string{"internal/exchange", "internal/wire"}},

	"internal/mcptest/everything": {imports: []string{"internal/exchange", "internal/streamable", "internal/transport", "internal/wire"}},
}

// beside are the packages of the module gosdk, with what of ours they may import: what is public. Programs of others import
// them together, and what they need is no dependency of this module.
var beside = map[string][]string{
	"gosdk":                 {"rootfs", "roots"},
	"gosdk/examples/client": {"gosdk", "roots"},
	"gosdk/examples/server": {"gosdk", "rootfs", "roots"},
}

// forTests is imported by tests only.
const forTests = "internal/mcptest"

// effects are what only one place may do, so that a reader knows where it happens and what surrounds it. A use is the path
// of a package that is imported, or a package and one of its names. An owner is a room, or one file of it.
var effects = []struct {
	name   string
	uses   []string
	owners []string
}{
	{
		"starting a process",
		[]string{"os/exec", "os.StartProcess", "syscall.StartProcess", "syscall.ForkExec", "syscall.Exec"},
		[]string{"internal/transport", forTests, "internal/sandbox/stage_unix.go", // a stage becomes the server
			"internal/sandbox/parts_linux.go"}, // whether a namespace can be had
	},
	{
		"listening",
		[]string{"net.Listen", "net.ListenConfig", "net.ListenPacket", "net.ListenTCP", "net.ListenUDP", "net.ListenUnix",
			"net.ListenUnixgram", "net/http.ListenAndServe", "net/http.ListenAndServeTLS", "net/http.Server"},
		[]string{"internal/approval", "internal/egress", "internal/streamable", "internal/ui", "internal/oauth/login.go", forTests}, // the browser comes back
	},
	{
		"opening files by path",
		[]string{"os.Open", "os.OpenFile", "os.OpenInRoot", "os.OpenRoot", "os.Create", "os.CreateTemp", "os.ReadFile", "os.ReadDir",
			"os.WriteFile", "os.Mkdir", "os.MkdirAll", "os.MkdirTemp", "os.Remove", "os.RemoveAll", "os.Rename", "os.Link",
			"os.Symlink", "os.Truncate", "os.Chmod", "os.DirFS", "syscall.Open", "io/ioutil"},
		[]string{
			"rootfs",                                                                                  // inside roots
			"roots",                                                                                   // what is to become one
			"internal/calllog", "internal/config", "internal/consent", "internal/cli", "internal/pin", // our own
			"internal/logindex",                // the index, and the files of the log
			"internal/oauth/oauth.go",          // logins
			"internal/statefile",               // written as a whole
			"internal/approval",                // grants, and where guards are reached
			"internal/clientconf",              // the files of clients
			"internal/demo", "internal/verify", // their workspaces
			"internal/launch/needs.go",          // the first lines of programs
			"internal/launch/install.go",        // what a package manager wrote
			"internal/launch/install_node.go",   // the same
			"internal/launch/install_python.go", // the same
			"internal/launch/tree.go",           // the same
			"internal/sandbox/connect_linux.go", // the process of a thread
			"internal/sandbox/parts_linux.go",   // whether the system lets users mount
			"internal/transport/tied_linux.go",  // the kernel's list of processes
			"internal/ui/own_linux.go",          // the kernel's table of connections
			forTests,
		},
	},
	{
		"reading the environment",
		[]string{"os.Getenv", "os.LookupEnv", "os.ExpandEnv"},
		[]string{"internal/cli", forTests},
	},
	{
		// Its module announces changes that break its users; they are to be mended in one place.
		"reading JSON text by token",
		[]string{"github.com/go-json-experiment/json/jsontext"},
		[]string{"internal/wire/scan.go"},
	},
	{
		"SQLite",
		[]string{"zombiezen.com/go/sqlite", "modernc.org/sqlite", "database/sql"},
		[]string{"internal/logindex/sqlite.go"},
	},
	{
		"ending the program",
		[]string{"os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln", "syscall.Exit"},
		[]string{"cmd/rootbound", forTests, "internal/mcptest/everything"},
	},
}

// skips are the tests that may be skipped, by file, and how often they say so. A test that is skipped proves nothing, so
// each stands here with its reason.
var skips = map[string]struct {
	n   int
	why string
}{
	"internal/calllog/limit_unix_test.go":      {1, "a disk that is full is /dev/full"},
	"internal/calllog/redact_test.go":          {1, "an input of a fuzz test that is no JSON"},
	"internal/config/edit_test.go":             {1, "links on Windows need a right"},
	"internal/config/watch_test.go":            {1, "links on Windows need a right"},
	"internal/fsserver/cancel_linux_test.go":   {1, "a second file system"},
	"internal/launch/launch_test.go":           {1, "links on Windows need a right"},
	"internal/pathargs/judge_test.go":          {1, "Windows has other names"},
	"internal/sandbox/confine_linux_test.go":   {1, "a kernel with an older Landlock than the tables are for"},
	"internal/sandbox/landlock_linux_test.go":  {1, "a kernel without Landlock"},
	"internal/transport/confine_linux_test.go": {1, "a kernel without Landlock"},
	"internal/ui/own_linux_test.go":            {1, "only root can be somebody else"},
	"peers/approve_tmux_linux_test.go":         {1, "tmux is not installed; with ROOTBOUND_PEERS=require a failure"},
	"peers/confine_linux_test.go":              {1, "a kernel that cannot confine; with ROOTBOUND_PEERS=require a failure"},
	"peers/install_linux_test.go":              {1, "no pip; with ROOTBOUND_PEERS=require a failure"},
	"peers/main_test.go":                       {1, "the peers are not installed; with ROOTBOUND_PEERS=require a failure"},
	"release/main_test.go":                     {1, "the peers are not installed, or it is not Linux; with ROOTBOUND_PEERS=require a failure"},
	"rootfs/change_linux_test.go":              {6, "no mounts, or no openat2, or names that cannot be exchanged; root may write everything"},
	"rootfs/change_test.go":                    {1, "Windows has other names"},
	"rootfs/locate_test.go":                    {2, "Windows has other names; a file system with one spelling"},
	"rootfs/names_test.go":                     {1, "macOS takes names of one meaning for one"},
	"rootfs/rootfs_test.go":                    {3, "Windows has other names and keeps open directories"},
	"rootfs/special_linux_test.go":             {3, "no /proc; a file system that cannot exchange names; root may read everything"},
	"rootfs/walk_linux_test.go":                {2, "no /proc; a file system that cannot exchange names"},
}

func TestImports(t *testing.T) {
	gone := maps.Clone(rooms)
	for _, p := range packages(t) {
		delete(gone, p.room)
		r, ok := rooms[p.room]
		if !ok {
			t.Errorf("package %s is not in the table of rooms", p.room)
			continue
		}
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				to, ours := strings.CutPrefix(importPath(spec), module+"/")
				switch {
				case !ours || slices.Contains(r.imports, to):
				case slices.Contains(r.imports, "*") && to != forTests:
				default:
					t.Errorf("%s imports %s: the table of rooms does not let %s do that", f.name, to, p.room)
				}
			}
		}
	}
	for name := range gone {
		t.Errorf("the table of rooms has %s, which is not there", name)
	}
}

func TestImportsBeside(t *testing.T) {
	gone := maps.Clone(beside)
	err := filepath.WalkDir("gosdk", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		name = filepath.ToSlash(name)
		dir := path.Dir(name)
		delete(gone, dir)
		allowed, ok := beside[dir]
		if !ok {
			t.Errorf("package %s is not in the table of what is beside", dir)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			if to, ours := strings.CutPrefix(importPath(spec), module+"/"); ours && to != dir && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: the table does not let %s do that", name, to, dir)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range gone {
		t.Errorf("the table of what is beside has %s, which is not there", name)
	}
	needs, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(needs), "modelcontextprotocol/go-sdk") {
		t.Error("go.mod needs the Go SDK of MCP, which is for the modules beside")
	}
}

// docs/design.md tells what each room is for, and of none that is not there.
func TestDesignHasEachRoom(t *testing.T) {
	var got []string
	for line := range strings.Lines(read(t, "docs/design.md")) {
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok && strings.HasPrefix(line, "| `") {
			got = append(got, cell)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(rooms)), got); diff != "" {
		t.Errorf("the rooms of docs/design.md are others (-arch_test.go +design.md):\n%s", diff)
	}
}

func TestEffects(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.files {
			used := uses(f.ast)
			for _, e := range effects {
				if slices.Contains(e.owners, p.room) || slices.Contains(e.owners, f.name) {
					continue
				}
				for _, use := range e.uses {
					if used[use] {
						t.Errorf("%s uses %s: %s belongs to %s", f.name, use, e.name, strings.Join(e.owners, ", "))
					}
				}
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		var comments []string
		for _, f := range p.files {
			if f.ast.Doc != nil {
				comments = append(comments, f.ast.Doc.Text())
			}
		}
		if len(comments) != 1 {
			t.Errorf("package %s has %d package comments, want 1", p.room, len(comments))
			continue
		}
		start := "Package " + path.Base(p.room) + " "
		if p.name == "main" {
			start = "Command " + path.Base(p.room) + " "
		}
		if !strings.HasPrefix(comments[0], start) {
			t.Errorf("the comment of package %s begins %.40q, want %q", p.room, comments[0], start)
		}
		if rooms[p.room].guards && !strings.Contains(comments[0], "\n# Limits\n") {
			t.Errorf("package %s guards something, and its comment has no # Limits", p.room)
		}
	}
}

func TestSkips(t *testing.T) {
	got := map[string]int{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				switch sel.Sel.Name {
				case "Skip", "Skipf", "SkipNow", "Short":
					if id, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"t", "b", "f", "tb", "testing"}, id.Name) {
						got[filepath.ToSlash(name)]++
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for name, s := range skips {
		want[name] = s.n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places where a test may be skipped, by file (-want +got):\n%s", diff)
	}
}

// TestInits holds that no regular expression is compiled when the program starts: a guard is started for every server of every
// client, and nearly all of it needs none of them. What needs one compiles it when it is asked for (sync.OnceValue).
func TestInits(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.room, forTests) {
			continue
		}
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				vars, ok := d.(*ast.GenDecl)
				if !ok || vars.Tok != token.VAR {
					continue
				}
				ast.Inspect(vars, func(n ast.Node) bool {
					if _, later := n.(*ast.FuncLit); later {
						return false
					}
					if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "MustCompile" {
						t.Errorf("%s compiles a regular expression for a variable when the program starts", f.name)
					}
					return true
				})
			}
		}
	}
}

// TestDeadCodeIsLeftOut holds that nothing in the program finds methods by a name that it learns when it runs, as text/template
// and html/template do. Where anything does, the linker keeps every exported method of every type, whoever uses it: that
// was 2.7 of 20.7 MB, which are also read, mapped and searched at each start.
func TestDeadCodeIsLeftOut(t *testing.T) {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "rootbound"), "./cmd/rootbound")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	var deps strings.Builder // what is linked, and what needs it, a pair in each line
	cmd.Stderr = &deps
	if err := cmd.Run(); err != nil {
		t.Fatalf("running %q: %v\n%s", cmd.Args, err, deps.String()[max(0, deps.Len()-2000):])
	}
	pairs, found := 0, map[string]bool{}
	for line := range strings.Lines(deps.String()) {
		pairs++
		if from, _, _ := strings.Cut(line, " -> "); strings.Contains(from, "<ReflectMethod>") && !found[from] {
			found[from] = true
			t.Errorf("the linker keeps every method of every type, since the program has %s", from)
		}
	}
	if pairs < 10_000 {
		t.Errorf("the linker tells of %d pairs, want more: has it other words now?", pairs)
	}
}

// pkg is a package with its files for every system, without its tests.
type pkg struct {
	room  string // its directory, from the module's root
	name  string
	files []file
}

type file struct {
	name string // from the module's root
	ast  *ast.File
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,GoFiles,CgoFiles,IgnoredGoFiles", "./...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %q: %v\n%s", cmd.Args, err, &stderr)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var listed struct {
			ImportPath, Name                  string
			GoFiles, CgoFiles, IgnoredGoFiles []string
		}
		if err := d.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		room, below := strings.CutPrefix(listed.ImportPath, module+"/")
		if !below {
			continue // the module's root has tests only
		}
		p := pkg{room: room, name: listed.Name}
		for _, base := range slices.Concat(listed.GoFiles, listed.CgoFiles, listed.IgnoredGoFiles) {
			if strings.HasSuffix(base, "_test.go") {
				continue
			}
			name := path.Join(room, base)
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.files = append(p.files, file{name, f})
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list has found no package")
	}
	return all
}

// uses tells which packages f imports, by path, and which of their names it uses, by path and name.
func uses(f *ast.File) map[string]bool {
	used, paths := map[string]bool{}, map[string]string{}
	for _, spec := range f.Imports {
		p := importPath(spec)
		used[p] = true
		local := path.Base(p)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		paths[local] = p
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && paths[id.Name] != "" {
				used[paths[id.Name]+"."+sel.Sel.Name] = true
			}
		}
		return true
	})
	return used
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // the parser took it
	}
	return p
}
