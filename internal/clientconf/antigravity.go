package clientconf

var antigravity = Client{
	ID: "antigravity", Name: "Antigravity", ReadOnly: "which of its two files is read differs by version",
	Precedence: "there is one file",
	Roots: Roots{Sends: Yes, Announces: Yes, Fact: Fact{
		Text: "it declares them; what it answers is not known", Source: "apify/mcp-client-capabilities", Date: "2026-11",
	}},
	Restart: "refresh the servers in its MCP panel",
	Places: []Place{{
		Scope: User, Paths: []string{"{home}/.gemini/config/mcp_config.json", "{home}/.gemini/antigravity/mcp_config.json"},
		Format: windsurfFormat,
	}},
}
