package clientconf

var rooCode = Client{
	ID: "roo-code", Name: "Roo Code", ReadOnly: "it is not maintained any more",
	Ended:      "shut down on 2026-05-15; Zoo Code goes on with its files",
	Variables:  []Syntax{BracesEnv, Workspace},
	Precedence: "project, user",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it declares no capability", Source: "its source, McpHub.ts", Date: "2026-04-14",
	}},
	Approval: Fact{Text: "it asks, but not for the tools in alwaysAllow", Source: "its source", Date: "2026-04-14"},
	Restart:  "it follows the file",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.roo/mcp.json"}, Format: strict},
		{
			Scope: User, Format: strict,
			Linux:   []string{"{config}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"},
			Darwin:  []string{"{home}/Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"},
			Windows: []string{"{appdata}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"},
		},
	},
}
