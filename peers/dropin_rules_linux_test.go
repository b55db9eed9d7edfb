package peers

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A difference is one that is meant. docs/differences.md lists it under its id.
type difference struct {
	id          string
	defaultOnly bool // not with --compat
	rare        bool // whether it shows depends on the system
	shapes      []shape
}

// shape is how answers differ. Patterns match whole texts, and where groups of two of them have the same name, so have
// their texts to be the same.
type shape struct {
	tools     string // "": every tool
	args      string // a part of the arguments; "": any
	not       string // and none of them has this
	want, got string // the reference server's answer and ours
	alike     bool   // instead: the answers are the same
	// instead: lines of the reference server's answer that ours has not, and lines of ours, "" for none
	gone, more string
	also       func(c toolCall, want, got string) bool
	disk       string // how the trees differ, as diskDifference has it; "": not at all
}

// Patterns for the differences of trees.
const (
	onlyTheirs = `([^\n]*: [^\n]* \| unchanged(\n|$))*` // the reference server alone changed something
	onlyOurs   = `([^\n]*: unchanged \| [^\n]*(\n|$))*`
	anyError   = `![^\n]*`
	aDiff      = "(?s)`{3,}diff\n.*"
)

// failing is an error in an answer of its own, or of one file of read_multiple_files.
func failing(text string) string {
	return `(?P<before>!|[^\n]*: Error - )` + text + `(?P<after>(?s:\n---\n.*)?)`
}

var (
	outsideText = failing(`Access denied - symlink target outside allowed directories: [^\n]* not in (?P<roots>[^\n]*)`)
	hiddenText  = failing(`Access denied - symlink target outside allowed directories, or missing: [^\n]* not in (?P<roots>[^\n]*)`)
	nowhereText = failing(`Parent directory does not exist: [^\n]*`)
	listing     = `list_directory|list_directory_with_sizes|directory_tree|search_files`
)

var differences = []difference{
	// Tools and arguments; those that tools/list shows are in compareTools.
	{id: "descriptions"},
	{id: "more-tools", defaultOnly: true, shapes: []shape{
		{tools: `read_lines|search_content|append_file|copy_file|delete_path|restore_path`, want: `!MCP error -32602: Tool (?P<tool>\w+) not found`, got: `(?s)[^!].*`, disk: onlyOurs},
	}},
	{id: "more-parameters", defaultOnly: true, shapes: []shape{
		{tools: `write_file`, args: `"version"`, want: `Successfully wrote to new`, got: `!The file has changed since version 0, so nothing was written: .*`, disk: `R/new: -rw-r--r-- "two" \| -rw-r--r-- "one"`},
		{tools: `edit_file`, args: `"replaceAll"`, want: aDiff, got: aDiff, disk: `R/same\.txt: -rw-r--r-- "x\\nother\\nsame\\nlast\\n" \| -rw-r--r-- "x\\nother\\nx\\nlast\\n"`},
	}},
	{id: "root-details", defaultOnly: true, shapes: []shape{
		{tools: `list_allowed_directories`, want: `Allowed directories:\n(?s:.*)|!error -32603: (?s:.*)`, got: `\{"content":.*"directories":\[\{"access":\["read","write","delete"\],"path":"\$W/R"\}.*`},
	}},
	{id: "file-version", defaultOnly: true, shapes: []shape{
		{tools: `get_file_info`, want: `(?s)(?P<lines>.*)`, got: `(?s)(?P<lines>.*)\nversion: [0-9a-z-]+`},
	}},
	{id: "denied-names", defaultOnly: true, shapes: []shape{
		{args: `"\.env"`, want: `(?s).*`, got: failing(`Access denied - \S*/\.env is protected: its name matches "\.env", one of the patterns of files that may hold secrets\. .*`), disk: onlyTheirs},
		{tools: `move_file`, args: `"\.env"`, want: `Successfully moved .*`, got: `!Access denied - one of these names, or one beneath them, is not served: .*`, disk: onlyTheirs},
	}},
	{id: "arguments-not-an-object", shapes: []shape{
		{want: `(?s)!error -32603: .*"expected": "record".*`, got: `(?s)!MCP error -32602: Input validation error: Invalid arguments for tool (?P<tool>\w+): Invalid input: .*`},
		{tools: `list_allowed_directories`, args: `^null$`, want: `(?s)!error -32603: .*"expected": "record".*`, got: `(?s)Allowed directories:\n.*`},
	}},
	{id: "text-for-a-list", shapes: []shape{
		{tools: `read_multiple_files`, args: `"paths":""`, want: `(?P<first>!.* expected array, received string at paths)\nToo small: .*`, got: `(?P<first>!.*)`},
	}},
	{id: "half-a-character", shapes: []shape{
		{args: `\\ud800`, want: `Successfully wrote to new`, got: `!error -32700: rootbound: this message was refused: .*surrogate.*`, disk: onlyTheirs},
	}},

	// Paths.
	{id: "link-out", shapes: []shape{
		{want: outsideText, got: hiddenText},
		{args: `out/x"`, want: `!ENOTDIR: not a directory, realpath '.*'`, got: hiddenText},
	}},
	{id: "link-nowhere", shapes: []shape{{want: nowhereText, got: hiddenText}}},
	{id: "later-root", shapes: []shape{
		{args: `"only`, want: `!ENOENT: .*|Successfully created directory only/(here|new)`, got: `here\n|(?s:size: .*)|Successfully (wrote|moved) .*|!(ENOTDIR: .*, scandir|EEXIST: .*, mkdir) '\$W/S/only/here'|` + aDiff, disk: `([^\n]*(only|moved|new)[^\n]*(\n|$))*`},
		{tools: `create_directory`, args: `"only/new"`, alike: true, disk: `R/only/new: drwxr-xr-x \| unchanged\nR/only: drwxr-xr-x \| unchanged\nS/only/new: unchanged \| drwxr-xr-x`},
	}},
	{id: "file-uris", shapes: []shape{
		{args: `"(file|FILE)://`, want: `!(ENOTDIR|ENOENT): .*|Successfully created directory FILE:.*`, got: `l1\nl2\nl3\n|only|not UTF-8|(?s:size: .*)|Successfully wrote to .*|!(ENOTDIR: .*, scandir|EEXIST: .*, mkdir) '(file://)?\$W/R/.*'|!Access denied - file://host\$W/R/a\.txt is not the URI of a file of this machine: .*|!Access denied - path outside allowed directories: /etc/passwd not in .*`, disk: `(R/(FILE:[^\n]* \| unchanged|(a\.txt|one line|bytes/bad.name): unchanged \| [^\n]*)(\n|$))*`},
		{args: `"(file|FILE)://`, tools: `create_directory`, alike: true, disk: onlyTheirs},
	}},
	{id: "dot-dot", shapes: []shape{
		{args: `(a\.txt|nope|x)/\.|outdir/\.\.`, want: `(?s).*`, got: `!(ENOTDIR|ENOENT): .*|` + hiddenText, disk: onlyTheirs},
	}},
	{id: "error-step", shapes: []shape{
		{not: `file:|/\.|"only|unicode/`, want: failing(`(?P<code>EACCES|ENOTDIR|ENAMETOOLONG): (?P<text>[a-z ]+), [a-z]+ '[^\n]*'`), got: failing(`(?P<code>EACCES|ENOTDIR|ENAMETOOLONG): (?P<text>[a-z ]+), [a-z]+ '[^\n]*'`)},
		{tools: `read_multiple_files`, gone: `shut/x: Error - EACCES: permission denied, realpath '.*'`, more: `shut/x: Error - EACCES: permission denied, open '.*'`},
	}},
	{id: "unlisted-directory", shapes: []shape{
		{args: `unlisted/`, want: `!EACCES: permission denied, scandir '.*'`, got: `Successfully .*|!ENOENT: .*`, disk: onlyOurs},
	}},
	{id: "unicode-names", shapes: []shape{
		{args: `unicode/`, not: `"(file|FILE):`, want: `(?s).*\$W/R/unicode/.*`, got: `(?s).*\$W/R/unicode/.*`, also: func(_ toolCall, want, got string) bool { return unaccented(want) == unaccented(got) }},
	}},
	{id: "not-utf8", shapes: []shape{
		{tools: listing, gone: `(\[FILE\] )?bad\x{fffd}name.*|(\S*/)?bad\x{fffd}name|No matches found|Combined size: .*`, more: `(\[FILE\] |\S*/)?file://\S*/bad%[Ff][Ff]name.*|Combined size: .*`, also: func(c toolCall, want, got string) bool { return strings.Contains(got, "file://") }},
	}},
	{id: "special-files", shapes: []shape{
		{want: failing(`ENXIO: [^\n]*`), got: failing(`Access denied - not a regular file or directory: .*`)},
		{args: `fifo|socket`, tools: `write_file`, want: `Successfully wrote to (fifo|socket)`, got: `!Access denied - not a regular file or directory: .*`, disk: onlyTheirs},
		{args: `fifo|socket`, tools: `move_file`, want: `Successfully moved .*`, got: `!EACCES: permission denied, rename .*`, disk: onlyTheirs},
	}},

	{id: "two-errors", shapes: []shape{
		{tools: `move_file`, args: `"source":"(nope|n+|loop|~)"`, want: `!(Destination already exists|Access denied - path outside allowed directories|ELOOP|ENAMETOOLONG): .*`,
			got: `!(ENOENT: .*|Access denied - path outside allowed directories: \$W/new .*|Access denied - Windows-style .*)`},
	}},

	// Reading.
	{id: "lines-of-a-directory", shapes: []shape{
		{tools: `read_text_file`, args: `"(head|tail)":-1`, want: ``, got: `!EISDIR: illegal operation on a directory, read`},
	}},
	{id: "head-and-tail", shapes: []shape{{args: `"head":1.*"tail":1`, want: anyError, got: `!Cannot specify both head and tail parameters simultaneously`}}},
	{id: "tail-below-one", shapes: []shape{
		{tools: `read_text_file`, args: `"tail":(0\.5|1e-9)`, want: `(?s).*`, got: `(?s).*`, also: func(_ toolCall, want, got string) bool {
			return len(want) < len(got) && strings.HasSuffix(got, want[max(0, len(want)-1000):])
		}},
	}},
	{id: "large-reads", shapes: []shape{
		{tools: `read_text_file`, want: `(?s).*`, got: `!EFBIG: file too large, read '\$W/R/.*': .*`, also: longerThan(4 << 20)},
		{tools: `read_multiple_files`, want: `(?s).*`, got: `(?s).*: Error - EFBIG: file too large: .*`, also: longerThan(4 << 20)},
	}},
	{id: "large-media", shapes: []shape{{tools: `read_media_file`, want: `(?s).*`, got: `!EFBIG: file too large, read '\$W/R/.*': .*`, also: longerThan(3895296 / 3 * 4)}}},

	// Listing and searching.
	{id: "order"}, // in comparison.explain
	{id: "link-sizes", shapes: []shape{
		{tools: `list_directory_with_sizes`, not: `bytes`, gone: `\[FILE\] (across|chain|dangling|dangling far|dangling out|dir|in.txt|loop|out|outdir|ring) .*|Combined size: .*`,
			more: `\[FILE\] (across|chain|dangling|dangling far|dangling out|dir|in.txt|loop|out|outdir|ring) .*|Combined size: .*`},
	}},
	{id: "large-listings", shapes: []shape{
		{tools: `list_directory|list_directory_with_sizes|search_files`, args: `wide`, gone: `.*w{200}.*`, more: `|.*(left out|not shown|more|fewer).*`, also: longerThan(1 << 20)},
		{tools: `directory_tree`, args: `wide`, want: `(?s).*`, got: `(?s)\{"content":.*not shown.*`, also: longerThan(1 << 20)},
	}},
	{id: "unreadable-directories", shapes: []shape{
		{tools: `directory_tree`, want: `!EACCES: permission denied, scandir '.*'`, got: `(?s)\{"content":.*it cannot be entered: permission.*could not be entered\..*`},
		{tools: `search_files`, more: `|\d+ director(y|ies) could not be entered\.`},
	}},
	{id: "excludes", shapes: []shape{
		{tools: `search_files|directory_tree`, args: `"excludePatterns"`, not: `"excludePatterns":\["(!|")`, gone: `.*`, also: excludedAnywhere},
	}},
	{id: "exclude-nothing", shapes: []shape{{tools: `directory_tree|search_files`, args: `"excludePatterns":\[""\]`, more: `.*`, gone: `|No matches found`}}},
	{id: "exclude-not", shapes: []shape{{tools: `directory_tree|search_files`, args: `"excludePatterns":\["![^*]*"\]`, more: `.*`}}},
	{id: "glob-characters", shapes: []shape{
		{tools: `search_files`, args: `"pattern":"[^"]*(\?|\[[!^])`, more: `\$W/R/😀\.js`},
		{tools: `search_files`, args: `"pattern":"\?\?`, gone: `\$W/R/😀\.js`, more: `No matches found`},
	}},
	{id: "glob-hash", shapes: []shape{{tools: `search_files`, args: `"pattern":"#`, gone: `No matches found`, more: `\$W/R/#c(/.*)?`}}},
	{id: "glob-escape", shapes: []shape{{tools: `search_files`, args: `"pattern":"\*\\\\`, gone: `No matches found`, more: `\$W/R/[^/]*\.js`}}},
	{id: "glob-not", shapes: []shape{{tools: `search_files`, args: `"pattern":"\*!\(`, want: `(?s).*`, got: `!The pattern ".*" cannot be used: ".*" asks for what does not match in a part of a name, .*`}}},

	// Writing.
	{id: "write-to-a-directory", shapes: []shape{
		{tools: `write_file`, want: `!EISDIR: illegal operation on a directory, rename '.*\.tmp' -> '(?P<path>[^']*)'`, got: `!EISDIR: illegal operation on a directory, open '(?P<path>[^']*)'`},
		{tools: `write_file`, want: `!EISDIR: illegal operation on a directory, rename '.*\.tmp' -> '(?P<path>[^']*)'`, got: `!EACCES: permission denied, open '(?P<path>[^']*)'`},
	}},
	{id: "long-names", shapes: []shape{
		{tools: `write_file`, args: `n{255}`, want: `!ENAMETOOLONG: name too long, open '.*\.tmp'`, got: `Successfully wrote to n+`, disk: onlyOurs + `R/n{255}: [^\n]*"1" \| [^\n]*"2"`},
	}},
	{id: "attributes", rare: true, shapes: []shape{
		{tools: `write_file|edit_file`, alike: true, disk: `R/attributed: (?P<file>[^\n]*) \| (?P<same>[^\n]*) with an attribute`},
	}},
	{id: "read-only-files", shapes: []shape{
		{tools: `write_file|edit_file`, args: `"(read only|shut.txt)"`, want: `Successfully wrote to .*|` + aDiff, got: `!EACCES: permission denied, open '.*'`, disk: onlyTheirs},
	}},
	{id: "deep-directories", shapes: []shape{{tools: `create_directory`, args: `(d/){300}`, want: `Successfully created directory .*`, got: `!ENAMETOOLONG: name too long, realpath '.*'`, disk: onlyTheirs}}},
	{id: "move-links", shapes: []shape{
		{tools: `move_file`, want: `(Successfully moved .*|` + anyError + `)`, got: `Successfully moved (in\.txt|chain|across|dir|out|outdir|dangling|loop) to .*`, disk: `[^\n]*(\n[^\n]*)*-> (?s:.*)`},
		{tools: `move_file`, alike: true, disk: `[^\n]*(\n[^\n]*)*-> (?s:.*)`},
		{tools: `move_file`, args: `"destination":"(out|outdir|dangling|loop)"`, want: anyError, got: `!Destination already exists: .*`},
	}},
	{id: "roots-stay", shapes: []shape{
		{tools: `move_file`, want: `!EINVAL: .*|Successfully moved .*|!Destination already exists: .*`, got: `!Access denied - an allowed directory, or one that holds it, stays where it is: .*`, disk: onlyTheirs},
	}},
	{id: "move-unreadable", defaultOnly: true, shapes: []shape{{tools: `move_file`, want: `Successfully moved (shut|open|unlisted) to .*`, got: `!EACCES: permission denied, rename '.*'`, disk: onlyTheirs}}},

	// Edits.
	{id: "edit-line-ends", shapes: []shape{{tools: `edit_file`, args: `crlf|mixed`, alike: true, disk: `R/(crlf|mixed)\.txt: -rw-r--r-- "[^\n|]*" \| -rw-r--r-- "[^\n|]*\\r\\n[^\n|]*"`}}},
	{id: "edit-byte-order-mark", shapes: []shape{
		{tools: `edit_file`, args: `bom\.txt`, want: aDiff, got: aDiff, also: func(_ toolCall, want, got string) bool { return strings.ReplaceAll(want, "\ufeff", "") == got },
			disk: `(R/bom\.txt: -rw-r--r-- "(z)\\ny\\n" \| -rw-r--r-- "\\ufeffz\\ny\\n")?`},
	}},
	{id: "edit-bytes", shapes: []shape{
		{tools: `edit_file`, args: `latin1|utf16`, alike: true, disk: `R/(latin1|utf16): -rw-r--r-- "[^\n]*\x{fffd}[^\n]*" \| -rw-r--r-- "[^\n]*\\x[^\n]*"`},
		{tools: `edit_file`, args: `latin1`, want: aDiff, got: `(?s)!Could not find exact match for edit:\ncaf\x{fffd}\n\nU\+FFFD in oldText .*`, disk: onlyTheirs},
	}},
	{id: "edit-several-matches", shapes: []shape{{tools: `edit_file`, want: aDiff, got: `(?s)!Found (more than )?\d+ matches for edit, at lines? .*`, disk: onlyTheirs}}},
	{id: "edit-empty-text", shapes: []shape{{tools: `edit_file`, args: `"oldText":""`, want: aDiff, got: `!oldText is empty, .*`, disk: onlyTheirs}}},
	{id: "edit-no-match", shapes: []shape{{tools: `edit_file`, want: `(?s)!Could not find exact match for edit:\n(?P<text>.*)`, got: `(?s)!Could not find exact match for edit:\n(?P<text>.*)(\n\nThe nearest lines of the file are:\n.*|\n\nThis is edit \d of \d\. .*|\n\nThe file has NUL.*)`}}},
	{id: "edit-indentation", shapes: []shape{
		{tools: `edit_file`, args: `tabs\.go|blanks\.py`, want: aDiff, got: aDiff, disk: `(R/(tabs\.go|blanks\.py): [^\n]* \| [^\n]*)?`},
		{tools: `edit_file`, args: `tabs\.go`, want: `(?s)!Could not find exact match for edit:\n.*`, got: aDiff, disk: onlyOurs},
	}},
	{id: "edit-large-files", shapes: []shape{{tools: `edit_file`, args: `17M`, want: aDiff, got: `!EFBIG: file too large, edit '.*': .*`}}},
	{id: "edit-large-diffs", shapes: []shape{{tools: `edit_file`, args: `600K`, want: aDiff, got: aDiff, also: func(_ toolCall, want, got string) bool { return len(got) < len(want) && len(got) < 600<<10 }}}},
	{id: "edit-diff", shapes: []shape{
		{tools: `edit_file`, args: `"(same\.txt|ten)"`, want: aDiff, got: aDiff, also: func(_ toolCall, want, got string) bool {
			return patched(want, "-") == patched(got, "-") && patched(want, "+") == patched(got, "+")
		}},
	}},
}

func longerThan(n int) func(toolCall, string, string) bool {
	return func(_ toolCall, want, _ string) bool { return len(want) > n }
}

// unaccented takes out of a text what spells letters of the tree in one way or another.
func unaccented(s string) string {
	for _, p := range [][2]string{{"\u00e9", "e\u0301"}, {"\u00ed", "i\u0301"}, {"\u1ed9", "o\u0323\u0302"}, {"\u1ecd", "o\u0323"}, {"\u00f4\u0323", "o\u0323\u0302"}} {
		s = strings.ReplaceAll(s, p[0], p[1])
	}
	return s
}

// patched returns the lines of a diff that one of the two files has, by its sign.
func patched(diff, sign string) string {
	var lines []string
	for l := range strings.SplitSeq(diff, "\n") {
		if strings.HasPrefix(l, sign) || strings.HasPrefix(l, " ") {
			lines = append(lines, l[1:])
		}
	}
	return strings.Join(lines, "\n")
}

// excludedAnywhere reports whether what is missing in ours has, somewhere, a name or path that is excluded.
func excludedAnywhere(c toolCall, want, got string) bool {
	var a struct{ ExcludePatterns []string }
	if err := json.Unmarshal([]byte(c.args), &a); err != nil {
		return false
	}
	gone, _ := lineDifference(want, got)
	for _, l := range gone {
		parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(l, "$W/R/"), "/"), "/")
		excluded := false
		for _, pattern := range a.ExcludePatterns {
			pattern = strings.Trim(pattern, "/")
			n := strings.Count(pattern, "/") + 1
			for i := 0; i+n <= len(parts); i++ {
				name := strings.Join(parts[i:i+n], "/")
				glob, _ := path.Match(pattern, name)
				excluded = excluded || name == pattern || glob && !strings.Contains(pattern, "*")
			}
		}
		if !excluded {
			return false
		}
	}
	return true
}

// lineDifference returns the lines that only one of two texts has.
func lineDifference(want, got string) (gone, more []string) {
	count := map[string]int{}
	for l := range strings.SplitSeq(got, "\n") {
		count[l]++
	}
	for l := range strings.SplitSeq(want, "\n") {
		if count[l]--; count[l] < 0 {
			gone = append(gone, l)
		}
	}
	for l, n := range count {
		for range n {
			more = append(more, l)
		}
	}
	return gone, more
}

var compiled = map[string]*regexp.Regexp{}

func pattern(s string) *regexp.Regexp {
	if compiled[s] == nil {
		compiled[s] = regexp.MustCompile(s)
	}
	return compiled[s]
}

// whole matches a pattern with a whole text and returns the named groups.
func whole(p, text string) (map[string]string, bool) {
	re := pattern(`^(?:` + p + `)$`)
	m := re.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	groups := map[string]string{}
	for i, name := range re.SubexpNames() {
		if name != "" {
			groups[name] += m[i] // of alternatives, one is empty
		}
	}
	return groups, true
}

// holds reports whether two answers, and the trees after them, differ in this way.
func (s shape) holds(c toolCall, want, got, disk string) bool {
	if s.tools != "" && !matches(s.tools, c.tool) || s.args != "" && !pattern(s.args).MatchString(c.args) || s.not != "" && pattern(s.not).MatchString(c.args) {
		return false
	}
	if !matches(s.disk, disk) || s.also != nil && !s.also(c, want, got) {
		return false
	}
	switch {
	case s.alike:
		return want == got
	case want == got:
		return false
	case s.want == "" && s.got == "":
		gone, more := lineDifference(want, got)
		return allMatch(s.gone, gone) && allMatch(s.more, more)
	}
	a, ok := whole(s.want, want)
	if !ok {
		return false
	}
	b, ok := whole(s.got, got)
	for name, text := range b {
		if theirs, both := a[name]; both && theirs != text {
			return false
		}
	}
	return ok
}

func matches(p, text string) bool {
	_, ok := whole(p, text)
	return ok
}

func allMatch(p string, lines []string) bool {
	return !slices.ContainsFunc(lines, func(l string) bool { return !matches(p, l) })
}

// comparison is a trial on two servers.
type comparison struct {
	mode      string
	calls     []toolCall
	want, got []string
	disk      string
}

// explain returns the ids of the differences that a trial shows. What is none, or more than one at once, is an error.
func (c comparison) explain(t *testing.T) []string {
	var ids []string
	disk := c.disk
	for i, call := range c.calls {
		want, got := c.want[i], c.got[i]
		if call.tool == "tools/list" {
			ids = append(ids, compareTools(t, c.mode, want, got)...)
			continue
		}
		if want != got {
			a, b := canonical(call, want), canonical(call, got)
			if a == b {
				ids = append(ids, "order")
				if call.tool != "list_directory_with_sizes" {
					t.Errorf("%s: %v: the answers differ in their order:\n reference: %.1500s\n ours:      %.1500s", c.mode, call, want, got)
				}
			}
			want, got = a, b
		}
		last := i == len(c.calls)-1
		if want == got && !(last && disk != "") {
			continue
		}
		after := ""
		if last || len(c.calls) > 1 && disk != "" && want != got {
			after, disk = disk, "" // a trial of several calls shows one thing
		}
		var found []string
		for _, d := range differences {
			if d.defaultOnly && c.mode == "compat" {
				continue
			}
			if slices.ContainsFunc(d.shapes, func(s shape) bool { return s.holds(call, want, got, after) }) {
				found = append(found, d.id)
			}
		}
		if len(found) != 1 {
			t.Errorf("%s: %.300v: the answers differ as these say: %v\n reference: %.1500s\n ours:      %.1500s\n trees: %.600s", c.mode, call, found, want, got, after)
		}
		ids = append(ids, found...)
	}
	return ids
}

// canonical puts what a listing shows in order; a tree becomes a line for each entry.
func canonical(c toolCall, answer string) string {
	switch {
	case !matches(listing, c.tool) || strings.HasPrefix(answer, "!") || strings.HasPrefix(answer, "{"):
		return answer
	case c.tool == "directory_tree":
		var tree []node
		if err := json.Unmarshal([]byte(answer), &tree); err != nil {
			return answer
		}
		return strings.Join(flatten(tree, ""), "\n")
	}
	lines := strings.Split(answer, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

type node struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Children *[]node `json:"children"`
}

func flatten(tree []node, beneath string) (lines []string) {
	for _, n := range tree {
		name := beneath + n.Name
		if n.Type == "directory" {
			name += "/"
		}
		if (n.Type == "directory") != (n.Children != nil) {
			name += fmt.Sprintf(" is a %s, has children: %v", n.Type, n.Children != nil)
		}
		lines = append(lines, name)
		if n.Children != nil {
			lines = append(lines, flatten(*n.Children, name)...)
		}
	}
	slices.Sort(lines)
	return lines
}

// compareTools compares two results of tools/list: but for the words, all that the reference server lists is there, in its
// order, and with --compat nothing else.
func compareTools(t *testing.T, mode, want, got string) []string {
	var a, b struct{ Tools []map[string]any }
	for text, to := range map[string]any{want: &a, got: &b} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatalf("%s: tools/list: %v", mode, err)
		}
	}
	ids := []string{"descriptions"}
	if len(b.Tools) > len(a.Tools) {
		ids = append(ids, "more-tools")
	}
	if len(b.Tools) < len(a.Tools) || mode == "compat" && len(b.Tools) != len(a.Tools) {
		t.Fatalf("%s: %d tools are listed, and the reference server has %d", mode, len(b.Tools), len(a.Tools))
	}
	for i, theirs := range a.Tools {
		ours := b.Tools[i]
		if mode == "default" {
			ids = append(ids, cutTo(theirs, ours)...)
		}
		if theirs, ours := wordless(theirs), wordless(ours); !reflect.DeepEqual(theirs, ours) {
			t.Errorf("%s: a tool is listed in another way:\n reference: %v\n ours:      %v", mode, theirs, ours)
		}
	}
	return ids
}

// cutTo takes out of our definition of a tool the properties that the reference server's has not, at any depth, and those
// that are required of our results alone. It returns what that shows.
func cutTo(theirs, ours map[string]any) (ids []string) {
	p, _ := theirs["properties"].(map[string]any)
	q, _ := ours["properties"].(map[string]any)
	for _, name := range sorted(q) {
		if _, ok := p[name]; ok || p == nil {
			continue
		}
		delete(q, name)
		if required, ok := ours["required"].([]any); ok && slices.Contains(required, any(name)) {
			ours["required"] = slices.DeleteFunc(required, func(r any) bool { return r == name })
			ids = append(ids, "root-details")
			continue
		}
		if name != "protection" {
			ids = append(ids, "more-parameters")
		}
	}
	for name, v := range theirs {
		theirs, ok1 := v.(map[string]any)
		ours, ok2 := ours[name].(map[string]any)
		if ok1 && ok2 {
			ids = append(ids, cutTo(theirs, ours)...)
		}
	}
	return ids
}

// wordless is a value without what describes.
func wordless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, m := range v {
			if _, words := m.(string); name != "description" || !words {
				out[name] = wordless(m)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, m := range v {
			out = append(out, wordless(m))
		}
		return out
	}
	return v
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
