package clientconf

var vscodeFormat = Format{Grammar: JSONC, Containers: in("servers"), Entry: plain}

var vscode = Client{
	ID: "vscode", Name: "VS Code", Writable: true,
	Variables:  []Syntax{Workspace, WorkspaceOf, WorkspaceName, UserHome, Separator, BracesEnv, Input, CommandOf},
	Precedence: "not known where one name is in several files",
	Roots: Roots{Sends: Yes, Announces: Yes, Fact: Fact{
		Text:   "every folder of the workspace; for a server of .mcp.json only the folder it is in",
		Source: "its source, src/vs/workbench/contrib/mcp", Date: "2026-08-22",
	}},
	Approval: Fact{
		Text:   "it asks, but not for tools that say readOnlyHint; a yes is for once, the session, the workspace or always",
		Source: "its source, mcpLanguageModelToolContribution.ts", Date: "2026-08-22",
	},
	Restart: "restart the server in VS Code: MCP: List Servers, then Restart",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.vscode/mcp.json"}, Format: vscodeFormat},
		{
			Scope: Project, Paths: []string{"{project}/*.code-workspace"},
			Format: Format{Grammar: JSONC, Containers: in("settings", "mcp", "servers"), Entry: plain},
		},
		{
			Scope: User, Format: vscodeFormat,
			Paths:   []string{"{home}/.vscode-server/data/User/mcp.json"},
			Linux:   []string{"{config}/Code/User/mcp.json", "{config}/Code - Insiders/User/mcp.json"},
			Darwin:  []string{"{home}/Library/Application Support/Code/User/mcp.json", "{home}/Library/Application Support/Code - Insiders/User/mcp.json"},
			Windows: []string{"{appdata}/Code/User/mcp.json", "{appdata}/Code - Insiders/User/mcp.json"},
		},
		{
			Scope: Profile, Format: vscodeFormat,
			Linux:   []string{"{config}/Code/User/profiles/*/mcp.json"},
			Darwin:  []string{"{home}/Library/Application Support/Code/User/profiles/*/mcp.json"},
			Windows: []string{"{appdata}/Code/User/profiles/*/mcp.json"},
		},
		{Scope: Project, Paths: []string{"{project}/.mcp.json"}, Format: portable, Note: "read by the agents beside the editor, and by other clients"},
		{
			Scope: Project, Role: Legacy, Paths: []string{"{project}/.vscode/settings.json"},
			Format: Format{Grammar: JSONC, Containers: in("mcp", "servers"), Entry: plain},
		},
		{
			Scope: User, Role: Legacy,
			Linux:   []string{"{config}/Code/User/settings.json"},
			Darwin:  []string{"{home}/Library/Application Support/Code/User/settings.json"},
			Windows: []string{"{appdata}/Code/User/settings.json"},
			Format:  Format{Grammar: JSONC, Containers: in("mcp", "servers"), Entry: plain},
		},
	},
}
