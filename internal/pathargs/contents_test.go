package pathargs

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// sources makes text files in the likeness of a TypeScript and a Go repository: relative imports, comments with slashes,
// absolute paths and URIs in strings, shebangs, regular expressions, scripts.
func sources() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	files := map[string]string{
		"tsconfig.json":      "{\n  \"compilerOptions\": { \"baseUrl\": \"./\", \"paths\": { \"@/*\": [\"../shared/src/*\"] } },\n  \"extends\": \"/etc/tsconfig.base.json\"\n}\n",
		".gitignore":         "/node_modules\n/dist/\n../\n*.log\n!/etc/keep\n",
		"scripts/build.sh":   "#!/bin/sh\nset -e\ncd ../..\ncp /etc/hosts ~/backup/\nrm -rf /tmp/build\n",
		"Dockerfile":         "FROM node:20\nCOPY . /usr/src/app\nRUN cat /etc/passwd > /dev/null\n",
		"go.mod":             "module example.com/m\n\ngo 1.26\n\nreplace example.com/x => ../x\n",
		".env.example":       "HOME=/home/me\nDB=file:///var/lib/app.db\n",
		"docs/install.md":    "# Install\n\nCopy to `/usr/local/bin` or ~/bin.\n\n[next](../next.md)\n",
		"one-line-root.txt":  "/etc/passwd",
		"one-line-up.txt":    "../../../etc/shadow",
		"one-line-home.txt":  "~/.ssh/id_rsa",
		"one-line-uri.txt":   "file:///etc/passwd",
		"one-line-drive.txt": `C:\Windows\System32`,
	}
	for i := range 60 {
		var b strings.Builder
		for range 1 + r.IntN(30) {
			switch r.IntN(9) {
			case 0:
				fmt.Fprintf(&b, "import { %s } from '%s%s'\n", pick("a", "B", "useX"), pick("../", "../../", "./", "@/", "/src/"), pick("lib", "utils/fs", "types"))
			case 1:
				fmt.Fprintf(&b, "// %s\n", pick("see /etc/hosts", "../README.md", "TODO(me): /usr/bin", "eslint-disable-next-line"))
			case 2:
				fmt.Fprintf(&b, "const p%d = '%s'\n", i, pick("/etc/passwd", "/usr/lib/node_modules", "../../x", "~/.config", "file:///tmp/x", `C:\\Users`))
			case 3:
				b.WriteString("/* " + pick("a block", "/bin/sh", "..") + " */\n")
			case 4:
				b.WriteString("const re = /^\\/home\\/.*$/\n")
			case 5:
				b.WriteString("/// <reference path=\"../types.d.ts\" />\n")
			case 6:
				b.WriteString("export const path = '/'\n")
			case 7:
				b.WriteString("#include \"../x.h\"\n")
			default:
				b.WriteString("\n")
			}
		}
		files[fmt.Sprintf("src/%c/file%d.ts", 'a'+i%5, i)] = b.String()

		b.Reset()
		fmt.Fprintf(&b, "// Package p%d reads /etc/app.conf.\npackage p%d\n\nimport (\n\t\"../relative\"\n\t\"path/filepath\"\n)\n\n", i, i)
		for range 1 + r.IntN(20) {
			fmt.Fprintf(&b, "%s\n", pick(`const root = "/"`, `//go:embed ../static/*`, `//go:generate sh -c "cd .. && make"`, `	os.Open("/etc/passwd")`,
				`	filepath.Join("..", "..", "x")`, "	u := `file:///etc/hosts`", `//line /usr/src/x.go:1`, ""))
		}
		files[fmt.Sprintf("internal/p%d/p.go", i)] = b.String()
	}
	return files
}

// Nothing in a file that is written through the guard is taken for a path, whatever the tool calls its arguments.
func TestContentsAreNeverPaths(t *testing.T) {
	w, set, p := world(t)
	tools := map[string]func(path, content string) any{
		"write_file": func(path, content string) any { return map[string]any{"path": path, "content": content} },
		"create":     func(path, content string) any { return map[string]any{"file_path": path, "file_text": content} },
		"str_replace": func(path, content string) any {
			return map[string]any{"path": path, "old_str": content, "new_str": content}
		},
		"replace_in_file": func(path, content string) any {
			return map[string]any{"filePath": path, "oldString": content, "newString": content, "search": content, "replacement": content}
		},
		"edit_file": func(path, content string) any {
			edits := []any{map[string]any{"oldText": content, "newText": content}}
			for line := range strings.Lines(content) { // an edit of one line, with its line end and without
				edits = append(edits, map[string]any{"oldText": line, "newText": strings.TrimSuffix(line, "\n")})
			}
			return map[string]any{"path": path, "edits": edits, "dryRun": false}
		},
		"push_files": func(path, content string) any {
			return map[string]any{"files": []any{map[string]any{"path": path, "content": content}}, "message": content}
		},
		"patch": func(path, content string) any {
			return map[string]any{"path": path, "patch": content, "diff": content, "code": content}
		},
	}
	judged, texts := 0, 0
	for name, content := range sources() {
		texts++
		for tool, arguments := range tools {
			b, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments(w+"/R/"+name, content)})
			if err != nil {
				t.Fatal(err)
			}
			for _, rules := range []Rules{{}, {Filesystem: true}} {
				args, err := Find("tools/call", b, nil, rules)
				if err != nil {
					t.Fatal(err)
				}
				v := Judge(args, set, p)
				if len(v.Judged) != 1 || v.Judged[0].Value != w+"/R/"+name || len(v.Refused()) != 0 {
					t.Fatalf("%s of %s: judged %+v", tool, name, v.Judged)
				}
				judged++
			}
		}
		// A map of files, and a whole file of several lines under a name that says nothing.
		b, err := json.Marshal(map[string]any{"name": "scaffold", "arguments": map[string]any{
			"files": map[string]string{w + "/R/" + name: content}, "data": content + "\n", "payload": map[string]string{"value": "\n" + content},
		}})
		if err != nil {
			t.Fatal(err)
		}
		args, err := Find("tools/call", b, nil, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		v := Judge(args, set, p)
		if len(v.Judged) != 1 || !v.Judged[0].Key || len(v.Refused()) != 0 {
			t.Fatalf("scaffold of %s: judged %+v", name, v.Judged)
		}
	}
	t.Logf("%d texts, %d calls", texts, judged)
}

// A server that speaks of a repository's paths works, and one that speaks of nothing of this machine is told apart from one
// that does.
func TestRepositoryPaths(t *testing.T) {
	_, set, p := world(t)
	params := []byte(`{"name":"get_file_contents","arguments":{"owner":"o","repo":"r","path":"/"}}`)
	for where, want := range map[Where]int{Local: 1, Elsewhere: 0} {
		args, err := Find("tools/call", params, nil, Rules{Where: where})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(Judge(args, set, p).Refused()); got != want {
			t.Errorf("where %d: %d refused, want %d", where, got, want)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	small, err := json.Marshal(map[string]any{"name": "write_file", "arguments": map[string]string{"path": "/x/y", "content": "z"}})
	if err != nil {
		b.Fatal(err)
	}
	large, err := json.Marshal(map[string]any{"name": "write_file", "arguments": map[string]string{"path": "/x/y", "content": strings.Repeat("line of text\n", 80_000)}})
	if err != nil {
		b.Fatal(err)
	}
	for name, params := range map[string][]byte{"small": small, "1MB": large} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if args, err := Find("tools/call", params, nil, Rules{}); err != nil || len(args) == 0 {
					b.Fatal(args, err)
				}
			}
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	w, set, p := world(b)
	args, err := Find("tools/call", toolCall(b, w, "read_file", map[string]any{"path": "W/R/sub/g"}), nil, Rules{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if len(Judge(args, set, p).Refused()) > 0 {
			b.Fatal("refused")
		}
	}
}
