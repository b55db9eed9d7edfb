package clientconf

var windsurfFormat = Format{Grammar: JSON, Containers: in("mcpServers"), Entry: Entry{
	Command: "command", Args: "args", Env: "env", Headers: "headers", URL: []string{"serverUrl", "url"}, Disabled: "disabled",
}}

var windsurf = Client{
	ID: "windsurf", Name: "Windsurf / Devin Desktop", ReadOnly: "its files changed with its name, and which agent reads which is not known well enough",
	Variables:  []Syntax{BracesEnv, BracesFile},
	Precedence: "not known",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "Cascade does not declare them; of the Devin agent it is not known", Source: "apify/mcp-client-capabilities", Date: "2026-11",
	}},
	Approval: Fact{
		Text: "of Cascade not known; the Devin agent asks before each tool", Source: "docs.devin.ai", Date: "2026-11",
	},
	Restart: "refresh the servers in the MCP panel",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.devin/mcp_config.json"}, Format: windsurfFormat},
		{Scope: Local, Paths: []string{"{project}/.devin/mcp_config.local.json"}, Format: windsurfFormat},
		{Scope: User, Paths: []string{"{home}/.codeium/windsurf/mcp_config.json", "{home}/.codeium/mcp_config.json"}, Format: windsurfFormat},
		{
			Scope: User, Format: windsurfFormat,
			Linux:   []string{"{config}/devin/mcp_config.json"},
			Darwin:  []string{"{home}/.config/devin/mcp_config.json"},
			Windows: []string{"{appdata}/devin/mcp_config.json"},
		},
	},
}
