package clientconf

var (
	continueYAML = Format{Grammar: YAML, BOM: true, Containers: []Container{{Keys: []string{"mcpServers"}, List: true}}, Entry: plain}
	continueJSON = Format{Grammar: JSONC, BOM: true, Containers: in("mcpServers"), Entry: plain}
)

var continueDev = Client{
	ID: "continue", Name: "Continue", ReadOnly: "it is not maintained any more",
	Ended:      "the last version is 2.0.0, of June 2026",
	Variables:  []Syntax{Secrets},
	Precedence: "all are taken together",
	Roots: Roots{Sends: No, Fact: Fact{
		Text: "it does not declare them", Source: "its source", Date: "2026-06-18",
	}},
	Restart: "reload its configuration",
	Places: []Place{
		{Scope: Project, Paths: []string{"{project}/.continue/mcpServers/*.yaml"}, Format: continueYAML},
		{Scope: Project, Paths: []string{"{project}/.continue/mcpServers/*.json"}, Format: continueJSON},
		{Scope: User, Paths: []string{"{home}/.continue/config.yaml", "{home}/.continue/mcpServers/*.yaml"}, Format: continueYAML},
		{Scope: User, Paths: []string{"{home}/.continue/mcpServers/*.json"}, Format: continueJSON},
	},
}
