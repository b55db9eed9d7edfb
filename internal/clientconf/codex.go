package clientconf

var codexFormat = Format{Grammar: TOML, Containers: in("mcp_servers"), Entry: Entry{
	Command: "command", Args: "args", Env: "env", Cwd: "cwd", Headers: "http_headers", URL: []string{"url"}, Enabled: "enabled",
}}

var codex = Client{
	ID: "codex", Name: "Codex", Writable: true,
	Precedence: "command line, project, user",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it declares elicitation only", Source: "its source; openai/codex#37903", Date: "2026-08-11",
	}},
	Approval: Fact{
		Text:   "by approval_policy and default_tools_approval_mode: prompt asks, approve does not, auto goes by the annotations",
		Source: "its source; openai/codex PR 16632, 17164", Date: "2026-11",
	},
	Seen:    Fact{Text: "it takes a byte order mark", Source: "0.171.0", Date: "2026-11-30"},
	Restart: "start Codex again",
	Places: []Place{
		{Scope: User, First: true, Paths: []string{"{CODEX_HOME}/config.toml", "{home}/.codex/config.toml"}, Format: codexFormat},
		{Scope: Project, Paths: []string{"{project}/.codex/config.toml"}, Up: true, Format: codexFormat, Note: "only if the project is trusted in the user's file"},
		{Scope: Managed, Role: Presence, Paths: []string{"/etc/codex/requirements.toml"}, Note: "can switch servers off"},
	},
}
