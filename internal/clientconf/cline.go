package clientconf

var clineFormat = Format{Grammar: JSON, Containers: in("mcpServers"), Entry: Entry{
	Command: plain.Command, Args: plain.Args, Env: plain.Env, Cwd: plain.Cwd, Headers: plain.Headers, URL: plain.URL, Disabled: plain.Disabled,
	Nested: map[string]Entry{"transport": plain},
}}

var cline = Client{
	ID: "cline", Name: "Cline", Writable: true,
	Variables:  []Syntax{BracesEnv},
	Precedence: "there is one file",
	StartsIn:   "/",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it declares no capability", Source: "its source, client.ts", Date: "2026-08-22",
	}},
	Approval: Fact{
		Text: "it asks, but not for the tools in autoApprove; annotations do not count", Source: "its source", Date: "2026-08-22",
	},
	Restart: "Cline follows the file; if not, restart the server in its MCP panel",
	Places: []Place{
		{
			Scope: User, First: true, Locks: true, Format: clineFormat,
			Paths: []string{
				"{CLINE_MCP_SETTINGS_PATH}", "{CLINE_DATA_DIR}/settings/cline_mcp_settings.json",
				"{CLINE_DIR}/data/settings/cline_mcp_settings.json", "{home}/.cline/data/settings/cline_mcp_settings.json",
			},
		},
		{
			Scope: User, Role: Legacy, Format: clineFormat, Note: "the file of versions before March 2026, taken over once",
			Linux:   []string{"{config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
			Darwin:  []string{"{home}/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
			Windows: []string{"{appdata}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
		},
		{Scope: User, Role: Unread, Paths: []string{"{home}/.cline/mcp.json"}, Format: elsewhere(JSON, "mcpServers")},
		{
			Scope: User, Role: Unread, Format: elsewhere(JSONC, "cline.mcpServers"),
			Linux:   []string{"{config}/Code/User/settings.json"},
			Darwin:  []string{"{home}/Library/Application Support/Code/User/settings.json"},
			Windows: []string{"{appdata}/Code/User/settings.json"},
		},
	},
}
