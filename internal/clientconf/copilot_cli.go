package clientconf

var copilotCLI = Client{
	ID: "copilot-cli", Name: "Copilot CLI", Writable: true,
	Variables:  []Syntax{Dollar, Braces, BracesDefault},
	Precedence: "a plugin's server has hidden one of the workspace",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it declares sampling and elicitation only", Source: "github/copilot-cli#4234", Date: "2026-07-23",
	}},
	Approval: Fact{
		Text: "it asks; --allow-tool and --deny-tool decide before", Source: "github/copilot-cli#4234", Date: "2026-07-23",
	},
	Seen: Fact{
		Text:   "in the user's file it takes comments, trailing commas and a byte order mark; the files of a project it did not list here",
		Source: "1.0.102", Date: "2026-11-30",
	},
	Restart: "start Copilot CLI again",
	Places: []Place{
		{Scope: User, First: true, Paths: []string{"{COPILOT_HOME}/mcp-config.json", "{home}/.copilot/mcp-config.json"}, Format: portable},
		{Scope: Project, Paths: []string{"{project}/.mcp.json", "{project}/.github/mcp.json"}, Up: true, Format: portable,
			Note: "only in a git repository"},
	},
}
