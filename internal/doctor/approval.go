package doctor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/splice"
)

// writing are words in the names of tools that change something.
var writing = []string{
	"write", "edit", "create", "delete", "remove", "move", "rename", "update", "append", "patch", "put", "set", "exec", "execute", "run",
	"shell", "copy", "upload", "push", "commit", "merge", "restore", "trash", "mkdir", "insert", "replace", "kill", "drop", "send", "post", "save",
}

// writes reports whether a tool changes something, by its name; "*" is every tool.
func writes(tool string) bool {
	if strings.Contains(tool, "*") {
		return true
	}
	for _, w := range nameWords(tool) {
		if slices.Contains(writing, w) {
			return true
		}
	}
	return false
}

// nameWords cuts a name at joints and at capitals.
func nameWords(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// approval judges what a file says about who approves calls.
func (x *examiner) approval(f *clientconf.File) {
	if f.Place.Format.Grammar == clientconf.Shell {
		x.crush(f)
	}
	if f.Dead() || f.Tree == nil {
		return
	}
	if check, ok := approvals[f.Client.ID]; ok {
		check(x, f)
	}
	allow := dialects[f.Client.ID].allow
	for _, e := range x.entries {
		if e.file != f || allow == "" || !e.read() {
			continue
		}
		x.allowed(f, e, texts(e.Entry, allow), allow)
	}
}

// allowed judges a list of tools of a server that are not asked about: one finding tells all that write.
func (x *examiner) allowed(f *clientconf.File, e *entry, list []*splice.Value, key string) {
	var found []string
	var pos splice.Pos
	for _, v := range list {
		if writes(v.Text) && !alwaysOff(e, v.Text) {
			found = append(found, v.Text)
			pos = posOr(pos, v.Pos)
		}
	}
	if len(found) > 0 {
		x.findIn("APPROVE-WRITE", e, pos, fmt.Sprintf("%s lets %s through without a question.", key, words(found)), "")
	}
}

// alwaysOff reports whether a tool is switched off in the entry.
func alwaysOff(e *entry, tool string) bool {
	for _, key := range []string{"disabledTools", "excludeTools", "disabled_tools"} {
		if slices.ContainsFunc(texts(e.Entry, key), func(v *splice.Value) bool { return v.Text == tool }) {
			return true
		}
	}
	return false
}

// asksNobody reports whether every tool of the entry is allowed for good.
func (e *entry) asksNobody() bool {
	return slices.ContainsFunc(texts(e.Entry, dialects[e.client.ID].allow), func(v *splice.Value) bool { return v.Text == "*" })
}

// approvals judge the settings of clients, by ID.
var approvals = map[string]func(x *examiner, f *clientconf.File){
	"claude-code": (*examiner).claudeCode, "vscode": (*examiner).vscode, "cursor": (*examiner).cursor, "codex": (*examiner).codex,
	"gemini-cli": (*examiner).gemini, "zed": (*examiner).zed, "goose": (*examiner).goose, "opencode": (*examiner).opencode, "amp": (*examiner).amp,
}

// all adds that a setting lets everything through.
func (x *examiner) all(f *clientconf.File, v *splice.Value, what string) {
	if v != nil {
		x.find("APPROVE-ALL", f, v.Pos, what, "")
	}
}

func (x *examiner) claudeCode(f *clientconf.File) {
	if isTrue(f.Tree, "enableAllProjectMcpServers") {
		x.find("APPROVE-ALL", f, memberPos(f.Tree, "enableAllProjectMcpServers"), "enableAllProjectMcpServers starts every server of every repository.",
			"Take it out, and approve servers one by one, in enabledMcpjsonServers.",
			because("A repository that you open runs its servers as you, and nobody is asked."))
	}
	if textAt(f.Tree, "permissions", "defaultMode") == "bypassPermissions" {
		x.all(f, at(f.Tree, "permissions", "defaultMode"), "permissions.defaultMode is bypassPermissions.")
	}
	for _, list := range []string{"allow", "ask", "deny"} {
		for _, rule := range texts(f.Tree, "permissions", list) {
			name, ok := strings.CutPrefix(rule.Text, "mcp__")
			if !ok {
				continue
			}
			server, tool, _ := strings.Cut(name, "__")
			switch {
			case strings.Contains(rule.Text, "("):
				x.find("PERM-RULE", f, rule.Pos, fmt.Sprintf("The rule %s has parentheses, and rules for tools of servers take none.", word(rule.Text)),
					fmt.Sprintf("Write %s.", word(rule.Text[:strings.Index(rule.Text, "(")])))
			case strings.Contains(server, "*"):
				x.find("PERM-RULE", f, rule.Pos, fmt.Sprintf("The rule %s has a * in the place of the server.", word(rule.Text)),
					"Name each server: \"mcp__SERVER\" is all of its tools.")
			case list == "allow" && (tool == "" || writes(tool)):
				x.find("APPROVE-WRITE", f, rule.Pos, fmt.Sprintf("permissions.allow lets %s through without a question.", word(rule.Text)), "")
			}
		}
	}
}

func (x *examiner) vscode(f *clientconf.File) {
	for _, key := range []string{"chat.tools.global.autoApprove", "chat.tools.autoApprove"} {
		if isTrue(f.Tree, key) {
			x.find("APPROVE-ALL", f, memberPos(f.Tree, key), key+" lets every tool of every server through.", "")
		}
	}
	for _, e := range x.entries {
		if e.file == f && e.read() && isTrue(e.Entry, "sandboxEnabled") {
			what := "sandboxEnabled lets every tool of this server through without a question."
			if wide := x.sandboxIsWide(f, e); wide != "" {
				what = fmt.Sprintf("sandboxEnabled lets every tool of this server through without a question, and its sandbox may write to %s.", word(wide))
			}
			x.findIn("APPROVE-SANDBOX", e, memberPos(e.Entry, "sandboxEnabled"), what, "")
		}
	}
}

// sandboxIsWide returns a directory that a sandbox may write to and that is broad.
func (x *examiner) sandboxIsWide(f *clientconf.File, e *entry) string {
	for _, tree := range []*splice.Value{at(e.Entry, "sandbox"), at(f.Tree, "sandbox")} {
		for _, v := range texts(tree, "filesystem", "allowWrite") {
			if x.broad(v.Text) != "" {
				return v.Text
			}
		}
	}
	return ""
}

func (x *examiner) cursor(f *clientconf.File) {
	for _, rule := range texts(f.Tree, "mcpAllowlist") {
		server, tool, ok := strings.Cut(rule.Text, ":")
		switch {
		case server == "*" && (!ok || writes(tool)):
			x.find("APPROVE-ALL", f, rule.Pos, fmt.Sprintf("mcpAllowlist has %s: every tool of every server.", word(rule.Text)), "")
		case ok && writes(tool):
			x.find("APPROVE-WRITE", f, rule.Pos, fmt.Sprintf("mcpAllowlist lets %s through without a question.", word(rule.Text)), "")
		}
	}
}

func (x *examiner) codex(f *clientconf.File) {
	if textAt(f.Tree, "approval_policy") == "never" && textAt(f.Tree, "sandbox_mode") == "danger-full-access" {
		x.all(f, at(f.Tree, "approval_policy"), "approval_policy is never, and sandbox_mode danger-full-access.")
	}
	for _, e := range x.entries {
		if e.file != f || !e.read() {
			continue
		}
		if v := at(e.Entry, "default_tools_approval_mode"); v != nil && v.Text == "approve" {
			list := texts(e.Entry, "enabled_tools")
			if at(e.Entry, "enabled_tools") == nil || slices.ContainsFunc(list, func(v *splice.Value) bool { return writes(v.Text) }) {
				x.findIn("APPROVE-WRITE", e, v.Pos, "default_tools_approval_mode is approve, for tools that write as well.",
					"Write \"prompt\", and approve single tools that only read.")
			}
		}
		for _, tool := range members(e.Entry, "tools") {
			if v := at(tool.Value, "approval_mode"); v != nil && v.Text == "approve" && writes(tool.Name) {
				x.findIn("APPROVE-WRITE", e, v.Pos, fmt.Sprintf("The tool %s is approved for good.", word(tool.Name)), "Write \"prompt\".")
			}
		}
	}
}

func (x *examiner) gemini(f *clientconf.File) {
	for _, e := range x.entries {
		if e.file != f || !e.read() {
			continue
		}
		if isTrue(e.Entry, "trust") {
			v := at(e.Entry, "trust")
			x.findIn("APPROVE-TRUST", e, memberPos(e.Entry, "trust"), "trust: true asks nobody about any tool of this server.",
				"Write \"trust\": false.", mending(replaceWhole(v.Pos, "true", "false")))
		}
	}
}

func (x *examiner) zed(f *clientconf.File) {
	if isTrue(f.Tree, "agent", "always_allow_tool_actions") {
		x.all(f, at(f.Tree, "agent", "always_allow_tool_actions"), "agent.always_allow_tool_actions lets every tool through.")
	}
	if textAt(f.Tree, "agent", "tool_permissions", "default") == "allow" {
		x.all(f, at(f.Tree, "agent", "tool_permissions", "default"), "agent.tool_permissions lets every tool through for which it says nothing else.")
	}
	for _, m := range members(f.Tree, "agent", "tool_permissions", "tools") {
		name, ok := strings.CutPrefix(m.Name, "mcp:")
		if !ok {
			continue
		}
		_, tool, _ := strings.Cut(name, ":")
		if strings.Contains(name, "*") {
			x.find("PERM-RULE", f, m.Pos, fmt.Sprintf("Zed looks for the exact name of a tool, and %s is none.", word(m.Name)), "Write one rule for each tool: \"mcp:SERVER:TOOL\".")
			continue
		}
		for _, list := range []string{"always_allow", "always_deny", "always_confirm"} {
			if v := at(m.Value, list); v != nil && len(v.Items) > 0 {
				x.find("PERM-RULE", f, posOr(memberPos(m.Value, list), v.Pos), fmt.Sprintf("For %s the patterns of %s are compared with an empty text.", word(m.Name), list),
					"Take the patterns out: for tools of servers only default counts.")
			}
		}
		if v := at(m.Value, "default"); v != nil && v.Text == "allow" && writes(tool) {
			x.find("APPROVE-WRITE", f, v.Pos, fmt.Sprintf("The tool %s is allowed for good.", word(m.Name)), "Write \"confirm\".")
		}
	}
}

func (x *examiner) goose(f *clientconf.File) {
	if textAt(f.Tree, "GOOSE_MODE") == "auto" {
		x.find("APPROVE-ALL", f, at(f.Tree, "GOOSE_MODE").Pos, "GOOSE_MODE is auto, which asks nobody.", "Write smart_approve, or approve.")
	}
	var found []string
	var pos splice.Pos
	for _, v := range texts(f.Tree, "user", "always_allow") {
		if _, tool, ok := strings.Cut(v.Text, "__"); ok && writes(tool) {
			found = append(found, v.Text)
			pos = posOr(pos, v.Pos)
		}
	}
	if len(found) > 0 {
		x.find("APPROVE-WRITE", f, pos, fmt.Sprintf("user.always_allow has %s.", words(found)), "Move them to ask_before.")
	}
}

func (x *examiner) opencode(f *clientconf.File) {
	v := at(f.Tree, "permission")
	switch {
	case v == nil:
	case v.Kind == splice.StringKind && v.Text == "allow":
		x.all(f, v, "permission allows everything.")
	default:
		for _, m := range members(v) {
			if m.Value.Text != "allow" && !strings.Contains(m.Name, "*") {
				continue
			}
			switch server := x.serverOf(f, m.Name); {
			case m.Name == "*" && m.Value.Text == "allow":
				x.find("APPROVE-ALL", f, m.Pos, "permission allows everything for which it says nothing else.", "Write \"ask\".")
			case server == "":
			case strings.Contains(m.Name, "*"):
				x.find("PERM-RULE", f, m.Pos, fmt.Sprintf("The rule %s has a *, which has been reported not to match tools of servers.", word(m.Name)), "Write one rule for each tool: \"SERVER_TOOL\".")
			case writes(strings.TrimPrefix(m.Name, server+"_")):
				x.find("APPROVE-WRITE", f, m.Pos, fmt.Sprintf("The tool %s is allowed for good.", word(m.Name)), "Write \"ask\".")
			}
		}
	}
}

// serverOf returns the server that a tool named SERVER_TOOL is of.
func (x *examiner) serverOf(f *clientconf.File, name string) string {
	for _, s := range f.Servers {
		if strings.HasPrefix(name, s.Name+"_") {
			return s.Name
		}
	}
	return ""
}

func (x *examiner) amp(f *clientconf.File) {
	if isTrue(f.Tree, "amp.dangerouslyAllowAll") {
		x.find("APPROVE-ALL", f, memberPos(f.Tree, "amp.dangerouslyAllowAll"), "amp.dangerouslyAllowAll lets every tool through.", "")
	}
	rules := items(f.Tree, "amp.permissions")
	for i, rule := range rules {
		tool := textAt(rule, "tool")
		for _, before := range rules[:i] {
			if broader := textAt(before, "tool"); broader != "" && covers(broader, tool) && len(members(before)) <= 2 {
				x.find("PERM-RULE", f, rule.Pos, fmt.Sprintf("The rule for %s stands behind one for %s, and the first that matches holds.", word(tool), word(broader)),
					"Put it before that one.")
				break
			}
		}
		if textAt(rule, "action") == "allow" && strings.HasPrefix(tool, "mcp__") && writes(tool) {
			x.find("APPROVE-WRITE", f, rule.Pos, fmt.Sprintf("The rule for %s allows it for good.", word(tool)), "Write \"ask\".")
		}
	}
}

// crush judges the plain lines "permissions allow TOOL…" of a crushrc.
func (x *examiner) crush(f *clientconf.File) {
	n := 0
	for line := range strings.Lines(string(f.Text())) {
		n++
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "permissions" || fields[1] != "allow" {
			continue
		}
		for _, tool := range fields[2:] {
			if rest, ok := strings.CutPrefix(tool, "mcp_"); ok && writes(rest) {
				at := splice.Pos{Line: n, Column: 1 + utf8.RuneCountInString(line[:strings.Index(line, tool)])}
				x.find("APPROVE-WRITE", f, at, fmt.Sprintf("The tool %s is allowed for good.", word(tool)), "")
			}
		}
	}
}

// covers reports whether a pattern with * matches everything that another one does.
func covers(pattern, other string) bool {
	if pattern == other {
		return true
	}
	prefix, rest, star := strings.Cut(pattern, "*")
	return star && rest == "" && strings.HasPrefix(other, prefix)
}
