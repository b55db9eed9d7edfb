package clientconf

var claudeCode = Client{
	ID: "claude-code", Name: "Claude Code", Writable: true,
	Variables:  []Syntax{Braces, BracesDefault},
	Precedence: "managed, local, project, user, plugin",
	IgnoresCwd: true,
	Roots: Roots{Sends: Yes, Announces: Yes, Fact: Fact{
		Text:   "the directory it was started in, and since 2.1.203 also the added ones (--add-dir, additionalDirectories)",
		Source: "changelog of 2.1.203; seen of 2.1.332", Date: "2026-11-30",
	}},
	Approval: Fact{
		Text:   "it asks; a yes is kept in permissions.allow of its settings; annotations of tools do not count",
		Source: "code.claude.com/docs; anthropics/claude-code#87452", Date: "2026-08-17",
	},
	Seen: Fact{
		Text: "it speaks 2026-07-28 where the server does; declares roots with listChanged; ignores cwd; sets CLAUDE_PROJECT_DIR; passes ${NAME} on as it " +
			"is written when NAME is not set, with a warning; takes a byte order mark; refuses comments and trailing commas; of a name that is given " +
			"twice takes the last",
		Source: "2.1.332", Date: "2026-11-30",
	},
	Restart: "start a new session of Claude Code, or reconnect the server with /mcp",
	Places: []Place{
		{
			Scope: Managed, Format: strict, Note: "takes control of every other file",
			Linux:   []string{"/etc/claude-code/managed-mcp.json"},
			Darwin:  []string{"/Library/Application Support/ClaudeCode/managed-mcp.json"},
			Windows: []string{`C:/Program Files/ClaudeCode/managed-mcp.json`},
		},
		{
			Scope: User, First: true, Locks: true, Paths: []string{"{CLAUDE_CONFIG_DIR}/.claude.json", "{home}/.claude.json"},
			Format: Format{Grammar: JSON, Entry: plain, Containers: []Container{
				{Keys: []string{"mcpServers"}},
				{Keys: []string{"projects", "*", "mcpServers"}, Scope: Local},
			}},
			Note: "the program's own state as well, written while it runs",
		},
		{Scope: Project, Paths: []string{"{project}/.mcp.json"}, Up: true, Format: portable},
		{
			Scope: User, Role: Settings, Format: elsewhere(JSON, "mcpServers"), First: true,
			Paths: []string{"{CLAUDE_CONFIG_DIR}/settings.json", "{home}/.claude/settings.json"},
		},
		{
			Scope: Project, Role: Settings, Format: elsewhere(JSON, "mcpServers"),
			Paths: []string{"{project}/.claude/settings.json", "{project}/.claude/settings.local.json"},
		},
		{Scope: User, Role: Unread, Paths: []string{"{home}/.claude/mcp.json", "{home}/.claude/.mcp.json"}, Format: strict},
	},
}
