package clientconf

var warp = Client{
	ID: "warp", Name: "Warp", ReadOnly: "it also starts servers that it finds in the files of other clients",
	Precedence: "not known",
	Approval:   Fact{Text: "by the profile of the agent, mcp_permissions in its settings", Source: "dyoshikawa/rulesync", Date: "2026-08-18"},
	Restart:    "restart the server in Warp's settings",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.warp/.mcp.json"}, Format: warpFormat},
		{Scope: User, Paths: []string{"{home}/.warp/.mcp.json"}, Format: warpFormat},
	},
}

var warpFormat = Format{Grammar: JSON, Containers: in("mcpServers"), Entry: Entry{
	Command: "command", Args: "args", Env: "env", Cwd: "working_directory", Headers: "headers", URL: []string{"url"},
}}
