package clientconf

var kiro = Client{
	ID: "kiro", Name: "Kiro", ReadOnly: "by which grammar it reads its files is not known",
	Variables:  []Syntax{Braces, BracesEnv},
	Precedence: "agent, project, user",
	Approval: Fact{
		Text: "it asks, but not for the tools in autoApprove", Source: "kiro.dev/docs/permissions", Date: "2026-11",
	},
	Restart: "Kiro follows the file",
	Places: []Place{
		{Scope: Agent, Paths: []string{"{project}/.kiro/agents/*.json"}, Format: strict},
		{Scope: Project, Paths: []string{"{project}/.kiro/settings/mcp.json"}, Format: strict},
		{Scope: User, Paths: []string{"{home}/.kiro/settings/mcp.json"}, Format: strict},
	},
}
