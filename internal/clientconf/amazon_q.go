package clientconf

var amazonQ = Client{
	ID: "amazon-q", Name: "Amazon Q", ReadOnly: "it is being followed by Kiro",
	Precedence: "project, user",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it does not declare them", Source: "apify/mcp-client-capabilities", Date: "2026-11",
	}},
	Approval: Fact{Text: "it asks; /tools trust does not", Source: "its documentation", Date: "2026-11"},
	Restart:  "start Amazon Q again",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.amazonq/mcp.json"}, Format: strict},
		{Scope: User, Paths: []string{"{home}/.aws/amazonq/mcp.json"}, Format: strict},
	},
}
