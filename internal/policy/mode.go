package policy

import "fmt"

// Mode says who asks a person when a decision is Ask. The zero value is nobody.
type Mode uint8

const (
	// AskNobody makes a question a no.
	AskNobody Mode = iota
	// AskAlways never leaves a question to the client.
	AskAlways
	// AskAuto leaves a question to a client that is known to ask by itself for this kind of tool.
	AskAuto
	// AskClient leaves every question to the client.
	AskClient
)

// String returns the word as --ask has it.
func (m Mode) String() string {
	return [...]string{"deny", "always", "auto", "client"}[min(m, AskClient)]
}

// Client is a program that asks its person by itself before it calls a tool, as it is usually set up.
type Client struct {
	// Name is what it calls itself in the protocol, and Title what people call it.
	Name, Title string
	// UnlessReadOnly says that it does not ask for a tool that is shown as read-only.
	UnlessReadOnly bool
	// Source is where that was read, and Date when the source is from.
	Source, Date string
}

// Clients are those that are known. A client that calls tools without asking, or of which it changed from version to version,
// is none of them.
var Clients = []Client{
	{"claude-code", "Claude Code", false, "its documentation of permissions; its changelog to 2.1.240", "2026-08-22"},
	{"Visual Studio Code", "VS Code", true, "its source, mcpLanguageModelToolContribution.ts and mcpServerRequestHandler.ts", "2026-08-27"},
	{"Visual Studio Code - Insiders", "VS Code Insiders", true, "the same", "2026-08-27"},
	{"Cline", "Cline", false, "its source at 21cb8d25, McpHub.ts and sdk-tool-policies.ts", "2026-08-22"},
	{"Roo Code", "Roo Code", false, "its source at cb836567, McpHub.ts", "2026-04-14"},
	{"gemini-cli-mcp-client", "Gemini CLI", false, "its source at 5411f113, mcp-client.ts and the policy engine", "2026-08-21"},
	{"crush", "Crush", false, "its source at 37f36e93, internal/agent/tools/mcp", "2026-08-21"},
}

// Leaves reports whether a question about a tool is left to a client, and why, for the log. ShownReadOnly is whether the client
// was told that the tool only reads.
func (m Mode) Leaves(client string, shownReadOnly bool) (why string, left bool) {
	switch m {
	case AskClient:
		return "every question is left to the client", true
	case AskAuto:
		for _, c := range Clients {
			if c.Name == client && !(c.UnlessReadOnly && shownReadOnly) {
				return fmt.Sprintf("%s asks by itself", c.Title), true
			}
		}
	}
	return "", false
}
