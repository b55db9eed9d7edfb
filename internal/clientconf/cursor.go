package clientconf

var cursor = Client{
	ID: "cursor", Name: "Cursor", Writable: true,
	Variables:  []Syntax{BracesEnv, UserHome, Workspace, WorkspaceName, Separator},
	Precedence: "project, user",
	IgnoresCwd: true, StartsIn: "{home}",
	Roots: Roots{Sends: Yes, Announces: No, Fact: Fact{
		Text: "the folders of the workspace; none in a window without one", Source: "cursor.com/docs; firelock-ai/kin#364", Date: "2026-07-19",
	}},
	Approval: Fact{
		Text: "it asks, or runs what mcpAllowlist in permissions.json lists", Source: "cursor.com/docs", Date: "2026-11",
	},
	Restart: "switch the server off and on in Cursor's settings, under Tools & MCP",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.cursor/mcp.json"}, Format: strict},
		{Scope: User, Paths: []string{"{home}/.cursor/mcp.json"}, Format: strict},
		{Scope: User, Role: Settings, Paths: []string{"{home}/.cursor/permissions.json"}, Format: Format{Grammar: JSONC}},
	},
}
