package clientconf

var lmStudio = Client{
	ID: "lmstudio", Name: "LM Studio", ReadOnly: "where its file is differs by installation",
	Precedence: "there is one file",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it needs directories as arguments", Source: "modelcontextprotocol/servers#2389", Date: "2025-07-20",
	}},
	Approval: Fact{Text: "it asks for each call, and can allow for good", Source: "lmstudio.ai/docs/app/mcp", Date: "2026-11"},
	Restart:  "save the file in LM Studio's own editor, or start it again",
	Places: []Place{
		{Scope: User, Paths: []string{"{home}/.lmstudio/mcp.json", "{home}/.cache/lm-studio/mcp.json"}, Format: strict},
	},
}
