package clientconf

var zedFormat = Format{Grammar: JSONC, Containers: in("context_servers"), Entry: Entry{
	Command: "command", Args: "args", Env: "env", Headers: "headers", URL: []string{"url"}, Enabled: "enabled",
	Nested: map[string]Entry{"command": {Command: "path", Args: "args", Env: "env"}},
}}

var zed = Client{
	ID: "zed", Name: "Zed", Writable: true,
	Precedence: "project, user",
	IgnoresCwd: true, StartsIn: "/",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it does not declare them, and will not, as they are deprecated", Source: "zed-industries/zed#53155", Date: "2026-05",
	}},
	Approval: Fact{
		Text:   "agent.tool_permissions, whose default is confirm; only the exact key mcp:SERVER:TOOL counts",
		Source: "zed.dev/docs/ai/mcp; dyoshikawa/rulesync", Date: "2026-08-18",
	},
	Restart: "Zed follows the file",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.zed/settings.json"}, Format: zedFormat},
		{
			Scope: User, Format: zedFormat,
			Linux:   []string{"{config}/zed/settings.json"},
			Darwin:  []string{"{home}/.config/zed/settings.json"},
			Windows: []string{"{appdata}/Zed/settings.json"},
		},
	},
}
