package clientconf

var gooseFormat = Format{Grammar: YAML, BOM: true, Containers: in("extensions"), Entry: Entry{
	Command: "cmd", Args: "args", Env: "envs", Headers: "headers", URL: []string{"uri"}, Enabled: "enabled",
}}

var goose = Client{
	ID: "goose", Name: "Goose", Writable: true,
	Precedence: "not known",
	Roots: Roots{Sends: Yes, Fact: Fact{
		Text: "one: the working directory, since 1.28.0", Source: "block/goose#7790", Date: "2026-03-18",
	}},
	Approval: Fact{
		Text:   "by GOOSE_MODE, whose default is auto and asks nothing; answers are kept in permission.yaml",
		Source: "its documentation; dyoshikawa/rulesync", Date: "2026-08-18",
	},
	Restart: "start a new Goose session",
	Places: []Place{
		{
			Scope: User, Format: gooseFormat,
			Linux:   []string{"{config}/goose/config.yaml"},
			Darwin:  []string{"{home}/.config/goose/config.yaml"},
			Windows: []string{"{appdata}/Block/goose/config/config.yaml"},
		},
		{Scope: Plugin, Paths: []string{"{project}/.agents/plugins/*/.mcp.json"}, Format: portable},
		{
			Scope: User, Role: Settings, Format: Format{Grammar: YAML, BOM: true},
			Linux:   []string{"{config}/goose/permission.yaml"},
			Darwin:  []string{"{home}/.config/goose/permission.yaml"},
			Windows: []string{"{appdata}/Block/goose/config/permission.yaml"},
		},
	},
}
