package clientconf

var claudeDesktop = Client{
	ID: "claude-desktop", Name: "Claude Desktop", Writable: true,
	Precedence: "there is one file",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it does not declare them", Source: "apify/mcp-client-capabilities", Date: "2026-11",
	}},
	Approval: Fact{
		Text:   "it asks for each tool, once or for good; the yes is kept in the app, and tools that write cannot have one for all",
		Source: "anthropics/claude-code#79734", Date: "2026-07",
	},
	Restart: "quit Claude Desktop and start it again",
	Places: []Place{{
		Scope: User, Format: strict,
		Linux:  []string{"{config}/Claude/claude_desktop_config.json"},
		Darwin: []string{"{home}/Library/Application Support/Claude/claude_desktop_config.json"},
		Windows: []string{ // the app from the Store reads its own first, and ignores the other
			"{localappdata}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json",
			"{appdata}/Claude/claude_desktop_config.json",
		},
	}},
}
