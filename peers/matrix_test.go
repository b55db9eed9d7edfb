package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The clients, in the order of their eras.
var (
	tsLegacy = peer{"ts-legacy", []string{"node", abs("node/client.mjs"), "legacy"}, true}
	tsAuto   = peer{"ts-auto", []string{"node", abs("node/client.mjs"), "auto"}, true}
	tsPinned = peer{"ts-pinned", []string{"node", abs("node/client.mjs"), "pinned"}, true}
	goLegacy = peer{"go-legacy", self("goclient", "2025-11-25"), false}
	goModern = peer{"go-modern", self("goclient", ""), false}
)

// The servers.
var (
	tsFilesystem = peer{"ts-filesystem", []string{"node", abs("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")}, true}
	tsEverything = peer{"ts-everything", []string{"node", abs("node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}, true}
	tsServer     = peer{"ts-server", []string{"node", abs("node/server.mjs")}, true}
	goServerPeer = peer{"go-server", self("goserver"), false}
)

// TestSameBytes drives each client on each server that speaks an era of it, once directly and once through the guard. The
// client must have the same results, and through the guard each end must get what the other end sent, to the byte.
func TestSameBytes(t *testing.T) {
	clients := []peer{tsLegacy, tsAuto, tsPinned, goLegacy, goModern}
	for _, client := range clients {
		for _, server := range []struct {
			peer
			plan    func(dir string) (plan, []string)
			clients []peer
		}{
			{tsFilesystem, filesystemPlan, []peer{tsLegacy, goLegacy}},
			{tsEverything, everythingPlan, []peer{tsLegacy, goLegacy}},
			{tsServer, toolsPlan, clients},
			{goServerPeer, toolsPlan, []peer{tsAuto, tsPinned, goModern}},
			{goServerPeer, oneRoundPlan, []peer{tsLegacy, goLegacy}}, // the guard asks its second question, which it hands out as a result
		} {
			if !slices.ContainsFunc(server.clients, func(c peer) bool { return c.name == client.name }) {
				continue
			}
			t.Run(client.name+"/"+server.name, func(t *testing.T) {
				t.Parallel()
				if client.node || server.node {
					needNode(t)
				}
				dir := workspace(t)
				p, args := server.plan(dir)
				command := append(slices.Clone(server.command), args...)

				alone := t.TempDir()
				direct := drive(t, client, tapped(alone, command), p)
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				fill(t, dir)
				outer, inner := t.TempDir(), t.TempDir()
				guarded := drive(t, client, tapped(outer, guardedBy([]string{"--root", dir}, tapped(inner, command))), p)
				for i := range direct {
					if direct[i] != guarded[i] {
						t.Errorf("step %d (%s %s)\nguarded %s\ndirect  %s", i, p.Steps[i].Do, p.Steps[i].Tool, guarded[i], direct[i])
					}
				}
				samePassage(t, readRecording(t, alone), readRecording(t, outer), readRecording(t, inner))
			})
		}
	}
}

// abs makes a path of this directory absolute: the guard starts a server in its first root.
func abs(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, path)
}

func tapped(dir string, command []string) []string { return append(self("tap", dir), command...) }

func guardedBy(flags, command []string) []string {
	return slices.Concat([]string{guard, "run", "--preset", "boundary"}, flags, []string{"--"}, command)
}

// workspace makes a directory with a few files, by its real name.
func workspace(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "project")
	fill(t, dir)
	return dir
}

func fill(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"README.md": "# A project\n", "src/main.go": "package main\n", "data/世界.txt": "早上好\n",
		"data/large.txt": strings.Repeat("0123456789abcde\n", 1<<16),
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func filesystemPlan(dir string) (plan, []string) {
	in := func(name string) string { return filepath.Join(dir, name) }
	return plan{Roots: []string{dir}, Steps: []step{
		{Do: "list"},
		call("list_allowed_directories", nil),
		call("read_text_file", args{"path": in("README.md")}),
		call("read_text_file", args{"path": in("data/世界.txt"), "head": 1}),
		call("read_text_file", args{"path": in("data/large.txt")}),
		call("read_multiple_files", args{"paths": []string{in("README.md"), in("src/main.go"), in("nowhere")}}),
		call("write_file", args{"path": in("new.txt"), "content": strings.Repeat("\"\\\u2028 \U0001f600\n", 1<<17)}),
		call("edit_file", args{"path": in("src/main.go"), "edits": []args{{"oldText": "main", "newText": "other"}}}),
		call("create_directory", args{"path": in("a/b")}),
		call("move_file", args{"source": in("src/main.go"), "destination": in("a/b/main.go")}),
		call("list_directory", args{"path": dir}),
		call("list_directory_with_sizes", args{"path": dir}),
		call("directory_tree", args{"path": dir}),
		call("search_files", args{"path": dir, "pattern": "**/*.md"}),
		call("read_media_file", args{"path": in("README.md")}),
		{Do: "parallel", Steps: slices.Repeat([]step{call("read_text_file", args{"path": in("README.md")})}, 20)},
		call("no_such_tool", nil),
		call("read_text_file", args{}),
	}}, []string{dir}
}

func everythingPlan(dir string) (plan, []string) {
	return plan{Roots: []string{dir}, Content: map[string]any{"name": "Ada"}, Steps: []step{
		{Do: "await", Notification: "notifications/tools/list_changed"},
		{Do: "await", Notification: "notifications/message"}, // it has asked for roots
		{Do: "list"},
		{Do: "level", Log: "info"},
		call("echo", args{"message": "hi"}),
		call("echo", args{"message": strings.Repeat("x", 1<<20)}),
		call("get-annotated-message", args{"messageType": "error", "includeImage": true}),
		call("get-resource-links", args{"count": 2}),
		call("gzip-file-as-resource", args{"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
		call("get-structured-content", args{"location": "Chicago"}),
		call("get-sum", args{"a": 1, "b": 2.5}),
		call("get-tiny-image", nil),
		call("get-roots-list", nil),
		call("trigger-sampling-request", args{"prompt": "say something", "maxTokens": 10}),
		call("trigger-elicitation-request", nil),
		call("trigger-url-elicitation", args{"url": "https://example.com/"}), // of no client here
		call("simulate-research-query", args{"topic": "roots"}),              // only as a task
		{Do: "call", Tool: "trigger-long-running-operation", Arguments: args{"duration": 0.2, "steps": 4}, Progress: true},
		{Do: "call", Tool: "trigger-long-running-operation", Arguments: args{"duration": 2, "steps": 40}, Progress: true, Cancel: true},
		{Do: "subscribe", URI: "demo://resource/static/document/features.md"},
		{Do: "read", URI: "demo://resource/static/document/features.md"},
		{Do: "prompt", Prompt: "args-prompt", Arguments: args{"city": "Uppsala"}},
		{Do: "complete", Arguments: args{
			"ref": args{"type": "ref/prompt", "name": "completable-prompt"}, "argument": args{"name": "department", "value": "E"},
		}},
	}}, nil
}

// toolsPlan is for the servers of this package.
func toolsPlan(dir string) (plan, []string) {
	slow := func(cancel bool) step {
		return step{Do: "call", Tool: "slow", Arguments: args{"steps": 3, "hang": cancel}, Progress: true, Cancel: cancel}
	}
	parallel := step{Do: "parallel"}
	for i := range 50 {
		parallel.Steps = append(parallel.Steps, call("echo", args{"text": fmt.Sprint(i)}))
	}
	return plan{Roots: []string{dir}, Content: map[string]any{"name": "Ada"}, Steps: []step{
		{Do: "list"},
		call("echo", args{"text": "\u2028 \x00 \U0001f600 <&>"}),
		call("echo", args{"text": strings.Repeat("x", 4<<20)}),
		call("big", args{"bytes": 1 << 20}),
		call("need_roots", nil),
		call("two_rounds", nil),
		slow(false),
		slow(true),
		call("echo", args{"text": "after a cancellation"}),
		{Do: "level", Log: "debug"},
		{Do: "call", Tool: "log", Log: "debug"},
		{Do: "await", Notification: "notifications/message"},
		{Do: "listen"},
		call("add_tool", nil),
		{Do: "await", Notification: "notifications/tools/list_changed"},
		call("added", nil),
		parallel,
		call("no_such_tool", nil),
	}}, nil
}
