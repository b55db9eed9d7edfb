package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/splice"
)

// dialect is how the entries of a client differ from those of others, beside what the clientconf table says.
type dialect struct {
	// types are the words for transports; empty where they are not known, or not written.
	types []string
	// url is what an address without a word means, where that is a trap.
	url string
	// unit is that of timeouts, "s" or "ms"; timeout is the key, "" where it is "timeout".
	unit string
	// timeouts are keys to write instead of timeout, where there is no such key.
	timeouts string
	// allow is the key of a list of tools that are not asked about.
	allow string
	// mixed says that an entry with a command and an address is refused.
	mixed bool
	// whole says that one entry that is refused takes the file with it.
	whole bool
}

// dialects are those that are known, by the ID of the client, as of November 2026.
var dialects = map[string]dialect{
	"claude-code":    {types: []string{"stdio", "http", "sse", "ws", "streamable-http"}},
	"claude-desktop": {types: []string{"stdio"}},
	"vscode":         {types: []string{"stdio", "http", "sse"}},
	"copilot-cli":    {types: []string{"local", "stdio", "http", "sse"}},
	"codex":          {timeouts: "startup_timeout_sec and tool_timeout_sec", mixed: true, whole: true},
	"gemini-cli":     {types: []string{"stdio", "http", "sse"}, unit: "ms"},
	"cline":          {types: []string{"stdio", "sse", "streamableHttp"}, unit: "s", url: "sse", allow: "autoApprove", whole: true},
	"roo-code":       {types: []string{"stdio", "sse", "streamable-http"}, unit: "s", allow: "alwaysAllow", mixed: true},
	"opencode":       {types: []string{"local", "remote"}, unit: "ms"},
	"goose":          {types: []string{"stdio", "streamable_http", "sse", "builtin", "platform", "frontend", "inline_python"}, unit: "s"},
	"crush":          {types: []string{"stdio", "http", "sse"}, unit: "s"},
	"librechat":      {types: []string{"stdio", "websocket", "sse", "streamable-http", "http"}, unit: "ms"},
	"kiro":           {allow: "autoApprove"},
	"amazon-q":       {unit: "ms"},
}

// meanings are the words for transports that clients have, by what they mean.
var meanings = map[string]string{
	"stdio": "stdio", "local": "stdio",
	"http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http", "remote": "http", "http-stream": "http",
	"sse": "sse", "ws": "ws", "websocket": "ws",
}

// groups are keys that mean the same in different clients. What a client itself has comes from its Format.
var groups = []struct {
	own  func(e clientconf.Entry) []string
	keys []string
}{
	{func(e clientconf.Entry) []string { return []string{e.Command} }, []string{"command", "cmd"}},
	{func(e clientconf.Entry) []string { return []string{e.Env} }, []string{"env", "environment", "envs"}},
	{func(e clientconf.Entry) []string { return []string{e.Cwd} }, []string{"cwd", "working_directory", "workingDirectory"}},
	{func(e clientconf.Entry) []string { return e.URL }, []string{"url", "uri", "serverUrl", "httpUrl"}},
	{func(e clientconf.Entry) []string { return []string{e.Headers} }, []string{"headers", "http_headers"}},
	{func(e clientconf.Entry) []string { return []string{e.Disabled, e.Enabled} }, []string{"disabled", "enabled"}},
}

// form judges how an entry is written.
func (x *examiner) form(e *entry) {
	if e.file.Dead() || e.Entry == nil || e.Entry.Kind != splice.ObjectKind || e.file.Place.Format.Grammar == clientconf.Shell {
		return
	}
	d := dialects[e.client.ID]
	own := e.file.Place.Format.Entry
	nested := x.shape(e, own)
	x.foreign(e, own, d)
	x.timeout(e, d)
	if !e.read() {
		return
	}
	x.transport(e, d, own)
	x.complete(e, d, own, nested)
	x.name(e)
}

// shape judges forms of the command; it reports whether the entry is in a form of its own.
func (x *examiner) shape(e *entry, own clientconf.Entry) (nested bool) {
	command := at(e.Entry, own.Command)
	switch {
	case command == nil || own.Command == "":
	case command.Kind == splice.ObjectKind && e.client.ID == "zed":
		nested = true
		x.findIn("SHAPE-LEGACY", e, command.Pos, "The command is a table, as Zed had it until December 2025.",
			"Write command, args and env beside each other.")
	case own.Argv && command.Kind == splice.StringKind:
		nested = true
		x.findIn("SHAPE-COMMAND", e, command.Pos, fmt.Sprintf("The command is a text, and %s takes a list of the program and its arguments.", e.client.Name),
			fmt.Sprintf("Write %s.", quotedList(strings.Fields(command.Text))))
	case !own.Argv && command.Kind == splice.ArrayKind:
		nested = true
		x.findIn("SHAPE-COMMAND", e, command.Pos, fmt.Sprintf("The command is a list, and %s takes the program as a text and its arguments in args.", e.client.Name), "")
	case !own.Argv && command.Kind == splice.StringKind && len(e.Args) == 0 && strings.Contains(strings.TrimSpace(command.Text), " ") &&
		!strings.ContainsAny(command.Text, `\"'`) && !strings.HasPrefix(command.Text, "/"):
		fields := strings.Fields(command.Text)
		x.findIn("SHAPE-COMMAND", e, command.Pos, "The command has its arguments in it, and no program is called that.",
			fmt.Sprintf("Write %s as the command and %s as args.", word(fields[0]), quotedList(fields[1:])))
	}
	if args := at(e.Entry, own.Args); args != nil && own.Args != "" && args.Kind != splice.ArrayKind && args.Kind != splice.NullKind {
		x.findIn("SHAPE-LIST", e, args.Pos, "The arguments are "+args.Kind.String()+", and a list is taken.", "")
	}
	if e.client.ID == "codex" {
		if tools := at(e.Entry, "tools"); tools != nil && tools.Kind == splice.ArrayKind {
			x.findIn("SHAPE-LIST", e, tools.Pos, "tools is a list, and Codex takes a table of tools here.", "Write enabled_tools.",
				because("Codex refuses the whole file."))
		}
	}
	for key := range own.Nested {
		if v := at(e.Entry, key); v != nil && v.Kind == splice.ObjectKind {
			nested = true
		}
	}
	return nested
}

func quotedList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = word(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// foreign finds keys of other clients.
func (x *examiner) foreign(e *entry, own clientconf.Entry, d dialect) {
	for _, m := range e.Entry.Members {
		if m.Name == "bearer_token" && e.client.ID == "codex" {
			x.findIn("KEY-REJECTED", e, m.Pos, "Codex refuses bearer_token.", "Write bearer_token_env_var with the name of an environment variable.")
			continue
		}
		if d.allow != "" && m.Name != d.allow && (m.Name == "autoApprove" || m.Name == "alwaysAllow") {
			x.findIn("KEY-FOREIGN", e, m.Pos, fmt.Sprintf("%s does not know %s.", e.client.Name, word(m.Name)), fmt.Sprintf("Write %s.", d.allow),
				mending(renameKey(m.Pos, m.Name, d.allow)))
			continue
		}
		for _, g := range groups {
			mine := slices.DeleteFunc(g.own(own), func(s string) bool { return s == "" })
			if !slices.Contains(g.keys, m.Name) || slices.Contains(mine, m.Name) {
				continue
			}
			switch {
			case m.Name == "cwd" && e.client.IgnoresCwd && e.read():
				if !e.Cwd.Given() { // else it is told with the paths
					x.findIn("CWD-IGNORED", e, m.Pos, fmt.Sprintf("%s does not start the server in %s.", e.client.Name, word(m.Value.Text)), "")
				}
			case len(mine) == 0: // it may know the key, or have none of that meaning
			case m.Name == "enabled" || m.Name == "disabled":
				other := map[string]string{"true": "false", "false": "true"}[m.Value.Text]
				x.findIn("KEY-FOREIGN", e, m.Pos, fmt.Sprintf("%s does not know %s.", e.client.Name, word(m.Name)), fmt.Sprintf("Write %s = %s.", mine[0], other))
			default:
				var options []option
				if at(e.Entry, mine[0]) == nil {
					options = append(options, mending(renameKey(m.Pos, m.Name, mine[0])))
				}
				x.findIn("KEY-FOREIGN", e, m.Pos, fmt.Sprintf("%s does not know %s.", e.client.Name, word(m.Name)), fmt.Sprintf("Write %s.", mine[0]), options...)
			}
		}
	}
}

// timeout judges the unit of a time.
func (x *examiner) timeout(e *entry, d dialect) {
	v := at(e.Entry, "timeout")
	if v == nil || v.Kind != splice.NumberKind {
		return
	}
	n, err := strconv.ParseFloat(v.Text, 64)
	if err != nil {
		return
	}
	switch {
	case d.timeouts != "":
		x.findIn("UNIT-TIMEOUT", e, v.Pos, fmt.Sprintf("%s does not know timeout.", e.client.Name),
			fmt.Sprintf("Write %s, in seconds: %s.", d.timeouts, number(n, n >= 1000)))
	case d.unit == "s" && n >= 5000:
		x.findIn("UNIT-TIMEOUT", e, v.Pos, fmt.Sprintf("The timeout %s is in seconds in %s.", v.Text, e.client.Name),
			fmt.Sprintf("Write %s, if milliseconds are meant.", number(n, true)), mending(replaceWhole(v.Pos, v.Text, number(n, true))))
	case d.unit == "ms" && n > 0 && n < 1000:
		x.findIn("UNIT-TIMEOUT", e, v.Pos, fmt.Sprintf("The timeout %s is in milliseconds in %s.", v.Text, e.client.Name),
			fmt.Sprintf("Write %s, if seconds are meant.", number(n*1000, false)), mending(replaceWhole(v.Pos, v.Text, number(n*1000, false))))
	}
}

func number(n float64, thousandth bool) string {
	if thousandth {
		n /= 1000
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// transport judges the word for the transport.
func (x *examiner) transport(e *entry, d dialect, own clientconf.Entry) {
	typ := e.Type.Text
	if typ == "" && e.client.ID == "cline" {
		typ = textAt(e.Entry, "transportType")
	}
	if e.client.ID == "claude-desktop" && (e.URL.Given() || meanings[typ] == "http" || meanings[typ] == "sse") {
		x.findIn("TYPE-UNSUPPORTED", e, posOr(e.Type.Pos, e.URL.Pos), "Claude Desktop starts only local servers from this file.",
			"Add it as a connector in the app's settings, or start it through an adapter such as npx mcp-remote.")
		return
	}
	if e.client.ID == "codex" && meanings[typ] == "sse" {
		x.findIn("TYPE-UNSUPPORTED", e, e.Type.Pos, "Codex has no SSE.", "Take a server with Streamable HTTP, or an adapter that is started as a command.")
		return
	}
	switch {
	case typ != "" && len(d.types) > 0 && !slices.Contains(d.types, typ) && e.Type.Given():
		means := meanings[typ]
		i := slices.IndexFunc(d.types, func(s string) bool { return means != "" && meanings[s] == means })
		if e.client.ID == "cline" && typ == "http" {
			i = slices.Index(d.types, "streamableHttp")
		}
		if i < 0 {
			x.findIn("TYPE-UNSUPPORTED", e, e.Type.Pos, fmt.Sprintf("%s does not know the transport %s.", e.client.Name, word(typ)),
				fmt.Sprintf("It knows %s.", words(d.types)))
			return
		}
		x.findIn("TYPE-SPELLING", e, e.Type.Pos, fmt.Sprintf("%s does not know the transport %s.", e.client.Name, word(typ)),
			fmt.Sprintf("Write %s.", word(d.types[i])), mending(replaceWhole(e.Type.Pos, typ, d.types[i])))
	case typ == "" && d.url != "" && e.URL.Given() && !e.Command.Given():
		key := "url"
		for _, m := range members(e.Entry) {
			if slices.Contains(own.URL, m.Name) {
				key = m.Name
			}
		}
		http := d.types[slices.IndexFunc(d.types, func(s string) bool { return meanings[s] == "http" })]
		x.findIn("TYPE-DEFAULT", e, posOr(memberPos(e.Entry, key), e.URL.Pos), fmt.Sprintf("The address has no type, which %s takes for %s.", e.client.Name, strings.ToUpper(d.url)),
			fmt.Sprintf("Write \"type\": %s beside it, if the server speaks Streamable HTTP.", word(http)))
	}
}

// complete judges whether an entry has what it needs.
func (x *examiner) complete(e *entry, d dialect, own clientconf.Entry, shaped bool) {
	if e.Command.Given() && e.URL.Given() && d.mixed {
		why := ""
		if d.whole {
			why = e.client.Name + " does not start with it: the whole file is refused."
		}
		var options []option
		if why != "" {
			options = append(options, because(why))
		}
		x.findIn("ENTRY-MIX", e, e.Pos, "The entry has a command and an address.", "", options...)
	}
	if e.Command.Given() || e.URL.Given() || shaped || e.client.ID == "goose" && !slices.Contains([]string{"stdio", "sse", "streamable_http"}, e.Type.Text) ||
		e.client.ID == "zed" && at(e.Entry, "settings") != nil || x.hasForeign(e, own) {
		return
	}
	what := "The entry has neither a command nor an address."
	if e.Type.Given() {
		what = fmt.Sprintf("The entry is of type %s and has neither a command nor an address.", word(e.Type.Text))
	}
	var options []option
	if d.whole {
		options = append(options, because(fmt.Sprintf("%s refuses the whole file with it, and no server of the file is started.", e.client.Name)))
	}
	x.findIn("ENTRY-INVALID", e, e.Pos, what, "", options...)
}

// hasForeign reports whether the entry has its command or address under another client's key, which is told already.
func (x *examiner) hasForeign(e *entry, own clientconf.Entry) bool {
	for _, key := range []string{"command", "cmd", "url", "uri", "serverUrl", "httpUrl"} {
		if at(e.Entry, key) != nil {
			return true
		}
	}
	return false
}

var codexName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
})

// name judges the name of a server.
func (x *examiner) name(e *entry) {
	switch {
	case e.client.ID == "codex" && !codexName().MatchString(e.Name):
		x.findIn("NAME-CHARSET", e, e.Pos, fmt.Sprintf("Codex takes letters, digits, _ and - in a name, and this one is %s.", word(e.Name)),
			fmt.Sprintf("Write %s.", word(regexp.MustCompile(`[^a-zA-Z0-9_-]+`).ReplaceAllString(e.Name, "-"))))
	case e.client.ID == "gemini-cli" && strings.Contains(e.Name, "_"):
		x.findIn("NAME-UNDERSCORE", e, e.Pos, fmt.Sprintf("Gemini CLI joins %s and the names of its tools with underscores.", word(e.Name)),
			fmt.Sprintf("Write %s.", word(strings.ReplaceAll(e.Name, "_", "-"))))
	case e.client.ID == "cursor" && strings.HasPrefix(strings.ToLower(e.Name), "filesystem"):
		x.findIn("NAME-CLIENT-BUG", e, e.Pos, fmt.Sprintf("Names that begin with filesystem, such as %s, have been reported not to work in Cursor.", word(e.Name)),
			"Rename it, for example to files.")
	}
}
