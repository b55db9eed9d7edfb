package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rootbound/rootbound/roots"
)

func command(line string) Command {
	words := strings.Fields(line)
	return Command{Path: words[0], Args: words[1:]}
}

// What a package runner is asked for is known also where it is no package, with the argument that it stands in.
func TestSpec(t *testing.T) {
	for _, tt := range []struct {
		line, want string
		at         int
	}{
		{"npx -y owner/repository /a", "owner/repository", 1},
		{"cmd /c npx -y @scope/name@1 /a", "@scope/name@1", 3},
		{"npx --package=@scope/name run", "@scope/name", 0},
		{"uvx --from git+https://example.test/x run", "git+https://example.test/x", 1},
		{"rootbound run --root /a -- npx name", "name", 5},
		{"npx -y rootbound run -- my-server", "", 0},
		{"node server.js", "", 0},
	} {
		c := command(tt.line)
		got := Identify(c)
		if got.Spec != tt.want || got.SpecAt != tt.at {
			t.Errorf("Identify(%s): Spec is %q in argument %d, want %q in %d", tt.line, got.Spec, got.SpecAt, tt.want, tt.at)
		}
	}
}

func TestIdentify(t *testing.T) {
	const fs = "@modelcontextprotocol/server-filesystem"
	tests := []struct {
		line string
		want string // the target, and its arguments
	}{
		{"npx -y " + fs + " /a /b", "npm:" + fs + " [/a /b]"},
		{"npx --yes --package " + fs + "@2026.8.31 -- mcp-server-filesystem /a", "npm:" + fs + "@2026.8.31 [/a]"},
		{"npx -p=" + fs + " mcp-server-filesystem /a", "npm:" + fs + " [/a]"},
		{"npx -y -p a -p b run /a", "an unknown program []"},
		{`C:\node\npx.CMD -y ` + fs + `@latest C:\work`, "npm:" + fs + `@latest [C:\work]`},
		{"cmd /c npx -y " + fs + " /a", "npm:" + fs + " [/a]"},
		{"cmd.exe /d /s /C npx " + fs, "npm:" + fs + " []"},
		{"npx -y owner/repository /a", "an unknown program []"},
		{"npx -y ./server /a", "an unknown program []"},
		{"npx -y git+https://example.test/x.git /a", "an unknown program []"},
		{"npx -c whatever", "an unknown program []"},
		{"npx", "an unknown program []"},
		{"npm exec --yes -- " + fs + " /a", "npm:" + fs + " [/a]"},
		{"npm x " + fs + " -- /a", "npm:" + fs + " [/a]"},
		{"npm run start", "an unknown program []"},
		{"pnpm dlx " + fs + " /a", "npm:" + fs + " [/a]"},
		{"pnpm --silent dlx mcp-remote https://example.test", "npm:mcp-remote [https://example.test]"},
		{"yarn dlx -q " + fs + " /a", "npm:" + fs + " [/a]"},
		{"bunx --bun " + fs + "@1 /a", "npm:" + fs + "@1 [/a]"},
		{"bun x " + fs + " /a", "npm:" + fs + " [/a]"},
		{"uvx mcp-filesystem@1.2 /a", "pypi:mcp-filesystem@1.2 [/a]"},
		{"uvx --python 3.12 --from MCP_Workspace[extra]==0.3 mcp-workspace --project-dir /a", "pypi:mcp-workspace@0.3 [--project-dir /a]"},
		{"uvx --from git+https://example.test/x mcp-workspace", "an unknown program []"},
		{"uv tool run mcp-filesystem /a", "pypi:mcp-filesystem [/a]"},
		{"uv --directory /src run mcp-filesystem /a", "mcp-filesystem [/a]"},
		{"uv run --with x python -m mcp_filesystem.server -d /a", "pypi:mcp-filesystem [-d /a]"},
		{"uv run -m mcp_workspace -m x", "pypi:mcp-workspace [-m x]"},
		{"uv run server.py", "server.py []"},
		{"pipx run --spec mcp-workspace==1 start --project-dir /a", "pypi:mcp-workspace@1 [--project-dir /a]"},
		{"python3.12 -u -m mcp_workspace --project-dir /a", "pypi:mcp-workspace [--project-dir /a]"},
		{"python server.py /a", "an unknown program []"},
		{"node --no-warnings /usr/lib/node_modules/" + fs + "/dist/index.js /a", "npm:" + fs + " [/a]"},
		{"node node_modules/mcp-remote/dist/proxy.js x", "npm:mcp-remote [x]"},
		{"node node_modules/.bin/mcp-server-filesystem /a", "mcp-server-filesystem [/a]"},
		{"node -r ./hook build/index.js /a", "an unknown program []"},
		{"node -e process.exit() node_modules/x/y.js", "an unknown program []"},
		{"deno run -A npm:" + fs + "@1 /a", "npm:" + fs + "@1 [/a]"},
		{"go run github.com/mark3labs/mcp-filesystem-server@latest /a", "go:github.com/mark3labs/mcp-filesystem-server@latest [/a]"},
		{"go run ./cmd/server /a", "an unknown program []"},
		{"docker run -i --rm --mount type=bind,src=/a,dst=/projects/a mcp/filesystem /projects", "oci:mcp/filesystem [/projects]"},
		{"docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:v1", "oci:ghcr.io/github/github-mcp-server@v1 []"},
		{"podman run -m 1g localhost:5000/x@sha256:12", "oci:localhost:5000/x@sha256:12 []"},
		{"docker exec x y", "an unknown program []"},
		{"env -u X A=1 B=2 npx -y " + fs + " /a", "npm:" + fs + " [/a]"},
		{"env -S npx", "an unknown program []"},
		{"sh -c npx", "an unknown program []"},
		{"/opt/bin/mcp-filesystem-server /a", "mcp-filesystem-server [/a]"},
		{`C:\bin\MCP-File-Tools.EXE C:\a`, `mcp-file-tools [C:\a]`},
		{"rootbound fs --ro x=/a /b", "rootbound fs [--ro x=/a /b]"},
		{"rootbound run --root /a -- npx -y " + fs + " /a", "npm:" + fs + " [/a] guarded"},
		{"/usr/bin/rootbound run --root /a -- sh -c x", "an unknown program [] guarded"},
		{"rootbound run -- rootbound run -- rootbound fs /a", "rootbound fs [/a] guarded"},
		{"rootbound doctor", "an unknown program []"},
		{"npx -y rootbound run --root /a -- npx -y " + fs + " /a", "npm:" + fs + " [/a] guarded"},
		{"npx rootbound@1.2.3 run -- my-server /a", "my-server [/a] guarded"},
		{"npm exec rootbound -- fs /a", "rootbound fs [/a]"},
		{"pnpm dlx rootbound fs /a", "rootbound fs [/a]"},
		{"npx -y rootbound", "an unknown program []"},
		{"node /opt/node_modules/rootbound/bin/rootbound.cjs run -- my-server /a", "my-server [/a] guarded"},
		{"node node_modules/.bin/rootbound fs /a", "rootbound fs [/a]"},
		{"/", "an unknown program []"},
	}
	for _, tt := range tests {
		c := command(tt.line)
		got := Identify(c)
		text := got.String() + " [" + strings.Join(got.Args, " ") + "]"
		if got.Guarded {
			text += " guarded"
		}
		if text != tt.want {
			t.Errorf("Identify(%s) = %s, want %s", tt.line, text, tt.want)
		}
		if got.Name != "" && !cmp.Equal(append([]string{}, got.Args...), append([]string{}, c.Args[got.At:]...)) {
			t.Errorf("Identify(%s): At is %d, and Args are %q", tt.line, got.At, got.Args)
		}
	}
}

func FuzzIdentify(f *testing.F) {
	for _, line := range []string{"npx -y a /b", "cmd /c env X=1 uv run python -m x", "docker run", "rootbound run -- --", "node", "go run", "uv"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		c := Command{Path: words[0], Args: words[1:]}
		got := Identify(c)
		if got.Name == "" {
			return
		}
		if diff := cmp.Diff(append([]string{}, c.Args[got.At:]...), append([]string{}, got.Args...)); diff != "" {
			t.Fatalf("Args are not those from At on:\n%s", diff)
		}
		if p, ok := Lookup(got); ok {
			for _, d := range p.Directories(got) {
				if !strings.Contains(c.Args[d.Arg], d.Path) {
					t.Fatalf("%q is not in argument %q", d.Path, c.Args[d.Arg])
				}
			}
		}
	})
}

func TestProfiles(t *testing.T) {
	tests := []struct {
		line       string
		filesystem bool
		paths      Paths
		want       []Directory
	}{
		{"npx -y @modelcontextprotocol/server-filesystem ~/a b", true, Local, []Directory{
			{Path: "~/a", Access: roots.ReadWrite, Arg: 2, Placeholder: "{roots}"},
			{Path: "b", Access: roots.ReadWrite, Arg: 3, Placeholder: "{roots}"},
		}},
		{"mcp-server-filesystem --port 80 --allowed-directories /a --allowed-directories=/b", true, Local, []Directory{
			{Path: "/a", Access: roots.ReadWrite, Arg: 3, Placeholder: "{root}"},
			{Path: "/b", Access: roots.ReadWrite, Arg: 4, Placeholder: "--allowed-directories={root}"},
		}},
		{"rust-mcp-filesystem -w -d zip_files /a", true, Local, []Directory{
			{Path: "/a", Access: roots.ReadWrite, Arg: 3, Placeholder: "{roots}"},
		}},
		{"rootbound fs --log off --ro docs=/d --root @active ui=/a -- /b=c", true, Local, []Directory{
			{Path: "/d", Name: "docs", Access: roots.ReadOnly, Arg: 4, Placeholder: "{root}"},
			{Path: "/a", Name: "ui", Access: roots.ReadWrite, Arg: 7, Placeholder: "{roots}"},
			{Path: "/b=c", Access: roots.ReadWrite, Arg: 9, Placeholder: "{roots}"},
		}},
		{"uvx mcp-workspace --log-file /l --project-dir /a --reference-project name=r,path=/r,url=u", true, Local, []Directory{
			{Path: "/a", Access: roots.ReadWrite, Arg: 4, Placeholder: "{root}"},
			{Path: "/r", Access: roots.ReadOnly, Arg: 6, Placeholder: "name=r,path=/r,url=u"},
		}},
		{"uvx mcp-workspace --project-dir", true, Local, nil},
		{"npx -y @wonderwhy-er/desktop-commander", true, Local, nil},
		{"docker run -i mcp/filesystem /projects", true, Elsewhere, nil},
		{"docker run -i example/anything /projects", false, Elsewhere, nil},
		{"github-mcp-server stdio", false, Elsewhere, nil},
		{"npx -y mcp-remote https://example.test/mcp", false, Elsewhere, nil},
	}
	for _, tt := range tests {
		target := Identify(command(tt.line))
		p, ok := Lookup(target)
		if !ok || p.Filesystem != tt.filesystem || p.Paths != tt.paths || p.Name == "" {
			t.Errorf("%s: profile %+v (known: %v)", tt.line, p, ok)
		}
		if diff := cmp.Diff(tt.want, p.Directories(target)); diff != "" {
			t.Errorf("%s: Directories (-want +got):\n%s", tt.line, diff)
		}
	}
	for _, line := range []string{"server-of-mine /a", "npx -y mcp-filesystem-server /a", "sh -c x"} {
		if p, ok := Lookup(Identify(command(line))); ok {
			t.Errorf("%s has the profile %q", line, p.Name)
		}
	}
	seen := map[string]string{}
	for _, p := range profiles {
		for _, name := range p.names {
			if seen[name] != "" {
				t.Errorf("%q is in the profiles %q and %q", name, seen[name], p.Name)
			}
			seen[name] = p.Name
		}
		if p.Filesystem && p.Paths == Elsewhere {
			t.Errorf("%q: a filesystem server whose paths are elsewhere", p.Name)
		}
	}
}

func TestCovers(t *testing.T) {
	p, _ := Lookup(Target{Registry: NPM, Name: "@modelcontextprotocol/server-filesystem"})
	for version, want := range map[string]bool{
		"2026.8.31": true, "2026.8": true, "2025.12.18": true, "v0.6.2": true,
		"2026.9.1": false, "2026.8.31.1": false, "2026.10.1": false, "latest": false, "": false, "^1": false, "-1": false,
	} {
		if got := p.Covers(version); got != want {
			t.Errorf("Covers(%q) = %v, want %v", version, got, want)
		}
	}
	if unknown, _ := Lookup(Target{Name: "mcp-filesystem-server"}); unknown.Covers("0.0.1") {
		t.Error("a profile without a version covers one")
	}
}

func TestSplitName(t *testing.T) {
	there := func(s string) bool { return s == "a=b" }
	for s, want := range map[string][2]string{
		"/srv":      {"", "/srv"},
		"docs=/srv": {"docs", "/srv"},
		"我的=/srv":   {"我的", "/srv"},
		"a=b":       {"", "a=b"},
		"a=c=d":     {"a", "c=d"},
		"./a=c":     {"", "./a=c"},
		"/x=1/y":    {"", "/x=1/y"},
		"x=":        {"x", ""},
		"=x":        {"", "x"},
	} {
		if name, dir := SplitName(s, there); name != want[0] || dir != want[1] {
			t.Errorf("SplitName(%q) = %q, %q, want %q", s, name, dir, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"roots", "client_roots", "command", "args", "cwd"}
	for word, want := range map[string]string{
		"root": "roots", "rootss": "roots", "clientroots": "client_roots", "comand": "command", "agrs": "args", "wcd": "cwd",
		"": "", "timeout": "", "xyz": "", "env": "",
	} {
		if got, ok := Nearest(word, known); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %v, want %q", word, got, ok, want)
		}
	}
}

// tree makes directories and returns a set of them.
func tree(t *testing.T, names ...string) (string, roots.Set) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var dirs []roots.Dir
	for _, name := range names {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		d, err := roots.Resolve(path, roots.ResolveOptions{Name: name, Access: roots.ReadWrite})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	return top, roots.NewSet(dirs...)
}

func TestFill(t *testing.T) {
	top, set := tree(t, "web", "我的项目")
	web, mine := filepath.Join(top, "web"), filepath.Join(top, "我的项目")
	c := Command{
		Path: "{root}/bin/server",
		Args: []string{"-v", "{roots}", "--docs={root:我的项目}", "{{roots}} {{root:web}}", `{"root": 1}`, "{rooted}"},
		Env:  map[string]string{"DIR": "{root:web}:{root}"},
		Dir:  "{root}",
	}
	got, err := c.Fill(set)
	if err != nil {
		t.Fatal(err)
	}
	want := Command{
		Path: web + "/bin/server",
		Args: []string{"-v", web, mine, "--docs=" + mine, "{roots} {root:web}", `{"root": 1}`, "{rooted}"},
		Env:  map[string]string{"DIR": web + ":" + web},
		Dir:  web,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Fill (-want +got):\n%s", diff)
	}
	if !c.UsesRoots() {
		t.Error("UsesRoots is false")
	}
	if plain := command("x {{root}} {rooted}"); plain.UsesRoots() {
		t.Errorf("UsesRoots of %v is true", plain)
	}
}

func TestFillRefused(t *testing.T) {
	_, set := tree(t, "web", "docs")
	hole := set.Dirs()
	hole[0].Access = 0
	tests := []struct {
		command Command
		set     roots.Set
		want    string
	}{
		{command("x {root:doc}"), set, `filling "{root:doc}": there is no root named "doc", did you mean "docs"?`},
		{command("x {root:something}"), set, `filling "{root:something}": there is no root named "something"; there are ["web" "docs"]`},
		{command("x {root:a}"), roots.Set{}, `filling "{root:a}": there is no root named "a", and no root has a name`},
		{command("x {roots}"), roots.Set{}, `filling "{roots}": there is no root to put in; name one with --root DIR, or in the configuration file`},
		{command("x {root}/y"), roots.Set{}, `filling "{root}/y": there is no root to put in; name one with --root DIR, or in the configuration file`},
		{command("x {roots}"), roots.NewSet(hole[0]), `filling "{roots}": there is no root to put in; name one with --root DIR, or in the configuration file`},
		{command("x --dirs={roots}"), set,
			`filling "--dirs={roots}": {roots} stands for several arguments and has to be one of its own; {root} and {root:NAME} fit into a text`},
		{Command{Path: "x", Env: map[string]string{"A": "{roots}"}}, set,
			`filling "{roots}": {roots} stands for several arguments and has to be one of its own; {root} and {root:NAME} fit into a text`},
	}
	for _, tt := range tests {
		if _, err := tt.command.Fill(tt.set); err == nil || err.Error() != tt.want {
			t.Errorf("Fill(%v): error %q, want %q", tt.command, err, tt.want)
		}
	}
}

func TestFillUsesTheWrittenPath(t *testing.T) {
	top, _ := tree(t, "real")
	link := filepath.Join(top, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Skipf("no links here: %v", err)
	}
	d, err := roots.Resolve(link, roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := FillText("{root}", roots.NewSet(d)); err != nil || got != link {
		t.Errorf("FillText = %q, %v, want %q", got, err, link)
	}
}

func TestCheckDirectories(t *testing.T) {
	top, set := tree(t, "web", "docs")
	_, other := tree(t, "other")
	outside := other.Dirs()[0].Path
	fs := func(dirs ...string) Command {
		return Command{Path: "npx", Args: append([]string{"-y", "@modelcontextprotocol/server-filesystem"}, dirs...)}
	}
	for _, c := range []Command{
		fs(), fs("{roots}"), fs(filepath.Join(top, "web"), "docs"), fs("web/not-there-yet"), fs("{root:web}"),
		command("server-of-mine " + outside), command("npx -y @modelcontextprotocol/server-github " + outside),
	} {
		if err := CheckDirectories(c, set, top); err != nil {
			t.Errorf("%v: %v", c.Args, err)
		}
	}
	err := CheckDirectories(fs("web", outside, "docs/../..", outside+"/missing"), set, top)
	var e *OutsideError
	if !errors.As(err, &e) {
		t.Fatalf("error %v", err)
	}
	want := &OutsideError{
		Outside: []string{outside, "docs/../..", outside + "/missing"},
		Roots:   []string{filepath.Join(top, "web"), filepath.Join(top, "docs")},
		Args:    []string{"-y", "@modelcontextprotocol/server-filesystem", "{roots}"},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("the error (-want +got):\n%s", diff)
	}
	if text := err.Error(); !strings.Contains(text, `args = ["-y", "@modelcontextprotocol/server-filesystem", "{roots}"]`) {
		t.Errorf("the error is %s", text)
	}
}
