package clientconf

var opencodeFormat = Format{
	Grammar: JSONC,
	Containers: []Container{ // of version 1, and of version 2
		{Keys: []string{"mcp"}, Except: []string{"servers"}},
		{Keys: []string{"mcp", "servers"}},
	},
	Entry: Entry{
		Command: "command", Argv: true, Env: "environment", Cwd: "cwd", Headers: "headers", URL: []string{"url"},
		Enabled: "enabled", Disabled: "disabled",
	},
}

var opencode = Client{
	ID: "opencode", Name: "opencode", Writable: true,
	Variables:  []Syntax{CurlyEnv, CurlyFile},
	Precedence: "project, user; a server replaces one of its name whole",
	Roots: Roots{Sends: Yes, Announces: No, Fact: Fact{
		Text: "one: the directory of the instance, since June 2026", Source: "anomalyco/opencode PR 32230; seen of 1.18.33", Date: "2026-11-30",
	}},
	Approval: Fact{
		Text: "calls are allowed unless a rule of permission says otherwise", Source: "anomalyco/opencode#2748", Date: "2025-09-23",
	},
	Seen: Fact{
		Text: "it reads the entries of both versions, comments and trailing commas also in opencode.json, and a byte order mark; {env:NAME} is empty when " +
			"NAME is not set; cwd counts",
		Source: "1.18.33", Date: "2026-11-30",
	},
	Restart: "start opencode again",
	Places: []Place{
		{
			Scope: Project, Up: true, Format: opencodeFormat,
			Paths: []string{"{project}/opencode.jsonc", "{project}/opencode.json", "{project}/.opencode/opencode.jsonc", "{project}/.opencode/opencode.json"},
		},
		{Scope: User, Paths: []string{"{OPENCODE_CONFIG}", "{config}/opencode/opencode.jsonc", "{config}/opencode/opencode.json"}, Format: opencodeFormat},
	},
}
