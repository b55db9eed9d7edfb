package fsserver

import "testing"

// reports are what users reported of servers of this kind, each as its reporter would try it. The id is the project and the
// number. What is held elsewhere, under the same addresses or beside them:
//   - servers 3253, 3183, pull 1027: TestARootUnderTwoNames, TestTheWholeDiskAsARoot, TestLinesOfAHugeFile
//   - servers 3752, 3317 (errors that name other roots): TestRedactedErrorsNameNoPath
//   - servers 3512, 3110 (codes, structured answers): every call of a trial, and TestArgumentsAreWhatTheSchemaSays
//   - servers 4157, 1591, pull 4115, 4628, docker-agent 3929, cherry-studio 20695, copilot-cli 3732 (edits, writes and moves): write_unix_test.go, edit_test.go
//   - servers 4029, 632, 1012 (media, read-only, names that are not served): media_unix_test.go, TestReadOnlyServer, TestDefaultDeny
//   - servers 2113, 3602, 3133, 4423, 3174, ext-apps 644, mcp-atlas 17, java-sdk 1067, claude-code 26663 and the others about roots: the tests of roots
//     and of internal/guard, TestARootThatIsGone
//   - gstack 1420, rust-mcp-filesystem 94, picoclaw 482 (races): TestRaces
//   - cli 2308 (FIFOs), servers 735 (large trees): TestAFIFOInEveryRole, E114 and E115 of the battery
var reports = []attempt{
	// https://github.com/advisories/GHSA-hc55-p739-j48w
	{id: "CVE-2025-53110", what: "a directory whose name begins as the root's", tree: map[string]string{"R-evil/f": canary, "Revil": canary}, steps: []step{
		tryRead("$W/R-evil/f", "deny outside_roots"), tryList("$W/R-evil", "deny outside_roots"), tryRead("$W/Revil", "deny outside_roots"), tryWrite("$W/R-evil/g", wantDeny),
		tryMkdir("$W/R-evil/d", wantDeny), tryAt("get_file_info", "$W/R-evil/f", wantDeny), trySearch("$W/R-evil", "**", wantDeny)}},
	// https://github.com/advisories/GHSA-q66q-fx2p-7w4m, https://github.com/modelcontextprotocol/servers/issues/1845
	{id: "CVE-2025-53109", what: "links that lead out", tree: map[string]string{"R/file": "-> $W/outside/f", "R/dir": "-> $W/outside"}, steps: []step{
		tryRead("$W/R/file", "deny outside_roots"), tryWrite("$W/R/file", wantDeny), tryEdit("$W/R/file", wantDeny), tryAt("get_file_info", "$W/R/file", wantEither), tryMove("$W/R/dir/f", "$W/R/x", wantDeny),
		tryRead("$W/R/dir/f", "deny outside_roots"), tryList("$W/R/dir", "deny outside_roots"), tryWrite("$W/R/dir/new", wantDeny), tryAt("append_file", "$W/R/file", wantDeny, `"content":"x"`),
		tryAt("delete_path", "$W/R/dir/f", wantDeny), {tool: "copy_file", args: `{"source":"$W/R/file","destination":"$W/R/x"}`, want: wantDeny}}},
	// https://github.com/modelcontextprotocol/servers/issues/3525
	{id: "servers 3525", what: "trouble with a link denies", tree: map[string]string{"R/loop": "-> loop", "R/nowhere": "-> /nowhere/at/all"}, steps: []step{
		tryRead("$W/R/loop", "deny loop"), tryWrite("$W/R/loop", wantDeny), tryMkdir("$W/R/loop/x", wantDeny), tryRead("$W/R/nowhere", "deny outside_roots"), tryWrite("$W/R/nowhere", wantDeny)}},
	// https://github.com/modelcontextprotocol/servers/issues/734
	{id: "servers 734", what: "a link to a directory inside", tree: map[string]string{"R/link": "-> a"}, steps: []step{
		tryWrite("$W/R/link/new", "~ wrote"), tryRead("$W/R/a/new", "~ written"), tryMkdir("$W/R/link/x/y", "~ created"), tryList("$W/R/link", "~ [DIR] x")}, check: textAt("R/a/new", "written by a client\n")},
	// https://github.com/modelcontextprotocol/servers/issues/2526
	{id: "servers 2526", what: "a relative path is not that of the process", steps: []step{
		tryRead("ok.txt", "= inside"), tryRead("f", wantAbsent), tryWrite("made", "~ wrote")}, check: textAt("R/made", "written by a client\n")},
	// https://github.com/modelcontextprotocol/servers/pull/4679
	{id: "servers 4679", what: "directories made beneath a link", tree: map[string]string{"R/link": "-> $W/outside"}, steps: []step{tryMkdir("$W/R/link/n1/n2", "deny outside_roots")}},
	// https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/420
	{id: "DesktopCommanderMCP 420", what: "a new file beneath a link", tree: map[string]string{"R/link": "-> $W/outside"}, steps: []step{tryWrite("$W/R/link/new.txt", "deny outside_roots")}},
	// https://github.com/rust-mcp-stack/rust-mcp-filesystem/pull/91
	{id: "rust-mcp-filesystem 91", what: "dots behind what does not exist", steps: []step{
		tryWrite("$W/R/new/../../x", wantDeny), tryMkdir("$W/R/new/../../x", wantDeny), tryWrite("new/../../x", wantDeny), tryMove("$W/R/ok2", "$W/R/new/../../x", wantDeny)}, check: textAt("R/ok2", "two")},
	// https://github.com/wailsapp/wails/pull/5896
	{id: "wails 5896", what: "a new directory beneath a link", tree: map[string]string{"R/link": "-> ../outside"}, steps: []step{tryMkdir("$W/R/link/newproj", "deny outside_roots")}},
	// https://github.com/CherryHQ/cherry-studio/pull/20505
	{id: "cherry-studio 20505", what: "a write through a link to nowhere", tree: map[string]string{"R/l": "-> $W/outside/new", "R/in": "-> $W/R/gone"}, steps: []step{
		tryWrite("$W/R/l", wantDeny), tryAt("append_file", "$W/R/l", wantDeny, `"content":"x"`), {tool: "copy_file", args: `{"source":"$W/R/ok.txt","destination":"$W/R/l","overwrite":true}`, want: wantDeny},
		tryMove("$W/R/ok2", "$W/R/l", wantDeny), tryWrite("$W/R/in", wantDeny)}, check: nothingAt("R/gone", "outside/new")},
	// codebase-memory-mcp, issue 51: an indexer that follows links out.
	{id: "codebase-memory-mcp 51", what: "walks through links", tree: map[string]string{"R/link": "-> ../outside", "R/file": "-> ../outside/f"}, steps: []step{
		tryAt("directory_tree", "$W/R", "~ link"), trySearch("$W/R", "**/*name*", wantEither), tryAt("search_content", "$W/R", wantEither, `"pattern":"nobody"`),
		{tool: "copy_file", args: `{"source":"$W/R","destination":"$W/S/copy"}`, want: wantEither}, tryAt("directory_tree", "$W/S", wantEither)}},
	// https://github.com/modelcontextprotocol/servers/issues/4686
	{id: "servers 4686", what: "paths of Windows", steps: []step{
		tryWrite(`C:\x`, "deny invalid_path"), tryWrite("C:/x", "deny invalid_path"), tryMkdir(`c:\x\y`, "deny invalid_path"), tryMove("$W/R/ok2", `C:\x`, "deny invalid_path")},
		check: nothingAt(`R/C:\x`, "R/C:", `R/c:\x\y`, `S/C:\x`)},
	// https://github.com/modelcontextprotocol/servers/issues/2795
	{id: "servers 2795", what: "a path of WSL is one of Linux", steps: []step{tryRead("/mnt/c/x", "! /mnt/c/x not in"), tryRead("/c/x", "! /c/x not in")}},
	// Letters are never folded.
	{id: "letters", what: "a directory that differs in letters", tree: map[string]string{"r/f": canary, "R/File": "one", "R/file": "two"}, steps: []step{
		tryRead("$W/r/f", "deny outside_roots"), tryRead("$W/R/File", "= one"), tryRead("$W/R/file", "= two"), tryRead("$W/R/FILE", wantAbsent)}},
	// https://github.com/modelcontextprotocol/servers/issues/1970
	{id: "servers 1970", what: "names with other code points", tree: map[string]string{"R/shot 9.41\u202fAM.png": "shot", "R/u\u0308ber.txt": "taken apart", "R/\u00e4.txt": "in one"}, steps: []step{
		tryList("$W/R", "~ shot 9.41\u202fAM.png"), tryRead("$W/R/shot 9.41\u202fAM.png", "= shot"), tryRead("$W/R/\u00fcber.txt", "= taken apart"), tryRead("$W/R/a\u0308.txt", "= in one"),
		tryWrite("$W/R/\u00fcber.txt", "~ wrote"), tryRead("$W/R/u\u0308ber.txt", "~ written")}, check: nothingAt("R/\u00fcber.txt")},
	// https://github.com/modelcontextprotocol/servers/issues/4633
	{id: "servers 4633", what: "two names that look alike", tree: map[string]string{"R/\u00fc": "in one", "R/u\u0308": "taken apart", "R/\u1ec7": "1", "R/\u1eb9\u0302": "2"}, steps: []step{
		tryRead("$W/R/\u00fc", "= in one"), tryRead("$W/R/u\u0308", "= taken apart"), tryRead("$W/R/e\u0323\u0302", "deny ambiguous_name"), tryEdit("$W/R/e\u0323\u0302", "deny ambiguous_name")}},
	// https://github.com/modelcontextprotocol/servers/issues/4629
	{id: "servers 4629", what: "directories that are missing", steps: []step{tryMkdir("$W/R/x/y/z", "~ created"), tryMkdir("$W/R/x/y/z", "~ created"), tryList("$W/R/x/y", "= [DIR] z"), tryMkdir("$W/R/ok2/z", wantDeny)}},
	// https://github.com/modelcontextprotocol/servers/pull/4175: the text behind the last line end is a line, as the reference server has it.
	{id: "servers 4175", what: "the last lines", tree: map[string]string{"R/l": "a\nb\n", "R/m": "a\nb"}, steps: []step{
		tryAt("read_text_file", "$W/R/l", "= ", `"tail":1`), tryAt("read_text_file", "$W/R/l", "= b\n", `"tail":2`), tryAt("read_text_file", "$W/R/m", "= b", `"tail":1`), tryAt("read_lines", "$W/R/l", "~ 2\tb", `"offset":2`)}},
	// A link that is moved takes nothing along.
	{id: "moved link", what: "a link that is moved", tree: map[string]string{"R/l": "-> a/b.txt"}, steps: []step{tryMove("$W/R/l", "$W/R/m", "~ moved"), tryRead("$W/R/m", "= b"), tryRead("$W/R/l", wantAbsent)},
		check: textAt("R/a/b.txt", "b")},
}

func TestReports(t *testing.T) {
	for i, a := range reports {
		t.Run(a.id, func(t *testing.T) {
			for _, fault := range attempted(t, a, eras[i%2], nil) {
				t.Errorf("%s: %s", a.what, fault)
			}
		})
	}
}
