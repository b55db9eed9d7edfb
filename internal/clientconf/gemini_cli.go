package clientconf

var geminiFormat = Format{Grammar: Comments, Containers: in("mcpServers"), Entry: Entry{
	Command: "command", Args: "args", Env: "env", Cwd: "cwd", Headers: "headers", URL: []string{"httpUrl", "url", "tcp"},
}}

var geminiCLI = Client{
	ID: "gemini-cli", Name: "Gemini CLI", Writable: true,
	Variables:  []Syntax{Dollar, Braces, BracesDefault},
	Precedence: "system, project, user, system defaults",
	Roots: Roots{Sends: Yes, Announces: Yes, Fact: Fact{
		Text:   "the directory it was started in, and those of --include-directories and /directory add",
		Source: "its source, mcp-client.ts", Date: "2026-08-21",
	}},
	Approval: Fact{
		Text:   "it asks: once, always for the tool or the server; trust: true in a trusted folder asks nothing",
		Source: "its source", Date: "2026-08-21",
	},
	Seen: Fact{
		Text: "it lists its servers as another client, without roots; cwd counts; $NAME and ${NAME} are passed on as they are written when NAME is not set; " +
			"a byte order mark stops it",
		Source: "0.61.0", Date: "2026-11-30",
	},
	Restart: "start Gemini CLI again",
	Places: []Place{
		{
			Scope: Managed, Format: geminiFormat, First: true, Paths: []string{"{GEMINI_CLI_SYSTEM_SETTINGS_PATH}"},
			Linux:   []string{"/etc/gemini-cli/settings.json"},
			Darwin:  []string{"/Library/Application Support/GeminiCli/settings.json"},
			Windows: []string{"{programdata}/gemini-cli/settings.json"},
		},
		{Scope: Project, Paths: []string{"{project}/.gemini/settings.json"}, Format: geminiFormat, Note: "only in a trusted folder that is not the home directory"},
		{Scope: User, Paths: []string{"{home}/.gemini/settings.json"}, Format: geminiFormat},
		{
			Scope: Managed, Format: geminiFormat, First: true, Paths: []string{"{GEMINI_CLI_SYSTEM_DEFAULTS_PATH}"}, Note: "defaults, which every other file overrides",
			Linux:   []string{"/etc/gemini-cli/system-defaults.json"},
			Darwin:  []string{"/Library/Application Support/GeminiCli/system-defaults.json"},
			Windows: []string{"{programdata}/gemini-cli/system-defaults.json"},
		},
	},
}
