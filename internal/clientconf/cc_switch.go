package clientconf

// ccSwitch is no client: it keeps servers in a database and writes the files of others.
var ccSwitch = Client{
	ID: "cc-switch", Name: "CC Switch", ReadOnly: "it keeps its servers in a database and writes them over the files of other clients",
	Precedence: "it writes over ~/.claude.json, ~/.codex/config.toml, ~/.gemini/settings.json and opencode.json",
	Writes:     []string{"claude-code", "codex", "gemini-cli", "opencode"},
	Restart:    "sync in CC Switch",
	Places: []Place{
		{Scope: User, Role: Presence, Paths: []string{"{home}/.cc-switch/cc-switch.db"}},
	},
}
