package clientconf

var librechat = Client{
	ID: "librechat", Name: "LibreChat", ReadOnly: "its servers run in its container, where Rootbound would have to be, too",
	Variables:  []Syntax{Braces, Mustache},
	Precedence: "there is one file",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it does not declare them", Source: "apify/mcp-client-capabilities", Date: "2026-11",
	}},
	Approval: Fact{Text: "the administrator decides, interface.mcpServers", Source: "librechat.ai/docs", Date: "2026-11"},
	Restart:  "start LibreChat again",
	Places: []Place{{
		Scope: Project, First: true, Paths: []string{"{CONFIG_PATH}", "{project}/librechat.yaml"},
		Format: Format{Grammar: YAML, BOM: true, Containers: in("mcpServers"), Entry: plain},
	}},
}
