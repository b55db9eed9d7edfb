package clientconf

var ampFormat = Format{Grammar: JSONC, Containers: in("amp.mcpServers"), Entry: plain}

var amp = Client{
	ID: "amp", Name: "Amp", ReadOnly: "where its file is on Windows is not known",
	Variables:  []Syntax{Dollar, Braces},
	Precedence: "managed, project, user",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it declares sampling only", Source: "apify/mcp-client-capabilities", Date: "2025",
	}},
	Approval: Fact{
		Text:   "amp.mcpPermissions for servers and amp.permissions for tools: the first rule that matches, else allowed",
		Source: "ampcode.com/news/mcp-permissions; dyoshikawa/rulesync", Date: "2026-08-18",
	},
	Restart: "start Amp again",
	Places: []Place{
		{
			Scope: Managed, Format: ampFormat,
			Linux:   []string{"/etc/ampcode/managed-settings.json"},
			Darwin:  []string{"/Library/Application Support/ampcode/managed-settings.json"},
			Windows: []string{"{programdata}/ampcode/managed-settings.json"},
		},
		{Scope: Project, Up: true, Paths: []string{"{project}/.amp/settings.json", "{project}/.amp/settings.jsonc"}, Format: ampFormat},
		{
			Scope: User, Format: ampFormat,
			Paths:   []string{"{config}/amp/settings.json", "{config}/amp/settings.jsonc"},
			Windows: []string{"{appdata}/amp/settings.json", "{appdata}/amp/settings.jsonc"},
		},
	},
}
