package clientconf

import (
	"slices"

	"github.com/rootbound/rootbound/internal/splice"
)

// Client is what is known of an MCP client.
type Client struct {
	// ID is its name on a command line, Name what people call it.
	ID, Name string
	// Places are where its files are, those that count most first.
	Places []Place
	// Writable says that its files are edited. Of the others ReadOnly says why not.
	Writable bool
	ReadOnly string
	// Variables are the forms that it fills in.
	Variables []Syntax
	// Precedence says which of two servers of one name counts, the strongest scope first.
	Precedence string
	// Roots says what it answers to roots/list.
	Roots Roots
	// Approval says who approves a call.
	Approval Fact
	// Seen is what the real program was seen to do.
	Seen Fact
	// Restart says what has to be done for an edit to count.
	Restart string
	// Ended says that the client is not maintained any more, and since when.
	Ended string
	// StartsIn is where it starts the servers of a user's file, where that is not the project: "{home}" or "/".
	StartsIn string
	// Writes are the clients, by ID, whose files it writes over.
	Writes []string
	// IgnoresCwd says that the working directory of an entry has no effect.
	IgnoresCwd bool
}

// Fact is something that is known, where from, and as of when.
type Fact struct {
	Text   string
	Source string
	Date   string // YYYY-MM-DD, or a part of it
}

// Answer is yes, no, or what is between.
type Answer uint8

// The answers. The zero Answer is not known.
const (
	Unknown Answer = iota
	No
	Yes
	// Empty is for clients that declare roots and answer with an empty list.
	Empty
)

// String returns the word for a table.
func (a Answer) String() string { return [...]string{"?", "no", "yes", "empty"}[a] }

// Roots is what a client does with the question for roots.
type Roots struct {
	Sends Answer
	// Announces says whether it tells of changes.
	Announces Answer
	Fact
}

// Scope is for whom a file counts.
type Scope string

// The scopes.
const (
	Managed Scope = "managed" // for everybody, by whoever administers the machine
	User    Scope = "user"
	Profile Scope = "profile" // one of several of a user
	Project Scope = "project"
	Local   Scope = "local" // a user's own for one project
	Plugin  Scope = "plugin"
	Agent   Scope = "agent"
)

// Role is what a file is to its client.
type Role uint8

const (
	// Servers is a file in which the client looks for servers.
	Servers Role = iota
	// Legacy is one that it read once, or reads only to take it over.
	Legacy
	// Settings is one with what bears on approval and roots, and without servers.
	Settings
	// Unread is one in which people put servers and the client does not look.
	Unread
	// Presence is one that only tells that a program is there: it is not read.
	Presence
)

// Place is where a file is, and how it is read.
type Place struct {
	Scope Scope
	Role  Role
	// Paths are where it is on every system, Linux, Darwin and Windows where it is only there. {home}, {config} (the XDG
	// directory), {appdata}, {localappdata}, {programdata}, {project} and {NAME}, an environment variable that has to be
	// set, stand for directories, and * for any name.
	Paths, Linux, Darwin, Windows []string
	// Up says that the directories above the project are looked through, too.
	Up bool
	// First says that only the first of the paths counts whose variables are set.
	First bool
	// Locks says that the client takes a directory, FILE.lock, while it writes the file.
	Locks bool
	// Format is how the file is read.
	Format Format
	// Note is what is to be known of the place.
	Note string
}

// Format is the grammar of a file and where the servers stand in it.
type Format struct {
	Grammar Grammar
	// BOM says that the client's parser takes a byte order mark.
	BOM bool
	// Containers lead to the tables of servers. The first is the one to write to.
	Containers []Container
	Entry      Entry
}

// Grammar is how a text is read.
type Grammar uint8

// The grammars.
const (
	JSON     Grammar = iota + 1 // no comments, no trailing commas
	Comments                    // JSON with comments, without trailing commas
	JSONC                       // JSON with comments and trailing commas
	TOML
	YAML
	Shell // a program: only lines of a known form are understood
)

// String returns the name of the grammar.
func (g Grammar) String() string {
	return [...]string{"none", "JSON", "JSON with comments", "JSONC", "TOML", "YAML", "a shell script"}[g]
}

// Container is where servers stand.
type Container struct {
	// Keys are the names that lead there; "*" is any, and is a project.
	Keys  []string
	Scope Scope // where it is another one than that of the file
	// Unread says that the client does not look here.
	Unread bool
	// List says that the servers are a list, and each has its name in it.
	List bool
	// Except are names in it that are no servers, unless they say of what type they are.
	Except []string

	stray bool // it is of another client
}

// Entry says under which keys an entry has what.
type Entry struct {
	Command, Args, Env, Cwd, Headers, Disabled, Enabled string
	URL                                                 []string
	// Nested are the keys of tables in which command and arguments may stand as well.
	Nested map[string]Entry
	// Argv says that the command is a list of the program and its arguments.
	Argv bool
}

// plain is the entry of most clients.
var plain = Entry{
	Command: "command", Args: "args", Env: "env", Cwd: "cwd", Headers: "headers", URL: []string{"url"}, Disabled: "disabled",
}

// in is a container at the top of a file.
func in(keys ...string) []Container { return []Container{{Keys: keys}} }

// strict is the format of most clients, portable what several of them read as .mcp.json.
var (
	strict   = Format{Grammar: JSON, Containers: in("mcpServers"), Entry: plain}
	portable = strict
)

// elsewhere is a format for servers that stand where the client does not look.
func elsewhere(g Grammar, keys ...string) Format {
	return Format{Grammar: g, Containers: []Container{{Keys: keys, Unread: true}}, Entry: plain}
}

// Clients returns all that are known, in the order in which they are shown.
func Clients() []*Client { return slices.Clone(clients) }

// Lookup returns the client with an ID.
func Lookup(id string) (*Client, bool) {
	i := slices.IndexFunc(clients, func(c *Client) bool { return c.ID == id })
	if i < 0 {
		return nil, false
	}
	return clients[i], true
}

func (g Grammar) splice() splice.Format {
	switch g {
	case JSON:
		return splice.JSON
	case Comments:
		return splice.Commented
	case JSONC:
		return splice.JSONC
	case TOML:
		return splice.TOML
	case YAML:
		return splice.YAML
	}
	return 0
}
