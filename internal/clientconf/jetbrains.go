package clientconf

var jetbrains = Client{
	ID: "jetbrains", Name: "JetBrains Junie and AI Assistant", ReadOnly: "older builds keep the servers in the settings of the IDE",
	Precedence: "not known",
	Approval:   Fact{Text: "Junie asks; its allow list is ~/.junie/allowlist.json", Source: "jetbrains.com/help/junie", Date: "2026-11"},
	Restart:    "restart the server in the settings of the IDE",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.junie/mcp/mcp.json", "{project}/.ai/mcp/mcp.json"}, Format: strict},
		{Scope: User, Paths: []string{"{home}/.junie/mcp/mcp.json", "{home}/.ai/mcp/mcp.json"}, Format: strict},
	},
}
