package calllog

import (
	"encoding/json"
	"time"
)

// Kind says what a record is about.
type Kind string

const (
	// Start opens a file: what runs, and under which rules.
	Start Kind = "start"
	// Exit closes a file. A file without it belongs to a run that goes on or was killed.
	Exit Kind = "exit"
	// Call is a request with its verdict, before it takes effect.
	Call Kind = "call"
	// End is how a call ended.
	End Kind = "end"
	// Asked is a question to a person whether a call may go on, before anybody is asked; Ask is what exactly is asked about.
	Asked Kind = "asked"
	// Answered is how it ended, before it takes effect: the Verdict, by which road (Code), and who answered (From, Reason).
	Answered Kind = "answered"
	// RootsAsked is a question for the list of roots: From asks To.
	RootsAsked Kind = "roots-asked"
	// RootsAnswered is the answer to the question with the same Ask.
	RootsAnswered Kind = "roots-answered"
	// RootsChanged is a change of the effective roots.
	RootsChanged Kind = "roots-changed"
	// ListChanged is a notification that a list changed, roots/list or another (Method), told by From to To.
	ListChanged Kind = "list-changed"
	// Note is anything else a person should know: a dropped line, a line over the limit, an oddity of a peer.
	Note Kind = "note"
)

// Verdict is what was decided about a request or a path. Empty means that nothing was decided.
type Verdict string

const (
	Deny  Verdict = "deny"
	Ask   Verdict = "ask"
	Allow Verdict = "allow"
)

// Outcome is how a call, or a question, ended.
type Outcome string

const (
	OK        Outcome = "ok"
	Failed    Outcome = "error"
	Cancelled Outcome = "cancelled"
	// Withheld: the server did what was asked, and its answer was not handed on.
	Withheld Outcome = "withheld"
)

// Party is who speaks or is spoken to.
type Party string

const (
	Client Party = "client"
	Guard  Party = "guard"
	Server Party = "server"
	// Person is somebody in a terminal.
	Person Party = "person"
)

// Codes of refused paths that Why can turn into a line that would allow them. Other codes are the guard's own; they come
// with a Fix where there is one.
const (
	// CodeOutside: the path is in no root.
	CodeOutside = "outside"
	// CodeNoRoots: nothing is configured, so no path is in a root.
	CodeNoRoots = "no-roots"
	// CodeReadOnly: the path is in a root that may not be written to.
	CodeReadOnly = "read-only"
)

// Record is one line of the log. Which members are set depends on its kind; what is empty is left out. Append writes
// every string redacted, with nothing in it that a terminal obeys, and cut at 4,096 bytes.
type Record struct {
	// Seq counts the records of a file from 1. Append sets it.
	Seq uint64 `json:"seq"`
	// Time is when the record was written, in UTC to the microsecond. Append sets it.
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Server is the guarded server's name. Append sets it from the start record.
	Server string `json:"server,omitempty"`
	// Session tells sessions apart where one run has several.
	Session string `json:"session,omitempty"`

	// Start: the version and process of this program; the server's command and working directory; the names (a value
	// after `=` is cut off) of the variables given to it; the configured directories; what is done with the client's
	// list (narrow, ignore, accept); and the layers in force (told, checked, contained, confined).
	Version     string   `json:"version,omitempty"`
	PID         int      `json:"pid,omitempty"`
	Command     []string `json:"command,omitempty"`
	Cwd         string   `json:"cwd,omitempty"`
	Env         []string `json:"env,omitempty"`
	Dirs        []Dir    `json:"dirs,omitempty"`
	ClientRoots string   `json:"client_roots,omitempty"`
	Layers      []string `json:"layers,omitempty"`

	// Exit: the exit status.
	Status int `json:"status,omitempty"`

	// Call is the short id of a call (see NewID), in its records of every kind. ID is the request's id as it came.
	Call   string          `json:"call,omitempty"`
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	// Verdict, and why: a code for machines, text for the person, and what to write or configure for another verdict, a line
	// each.
	// Code and Reason say also why something failed, changed or is noted.
	Verdict Verdict `json:"verdict,omitempty"`
	Code    string  `json:"code,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Fix     string  `json:"fix,omitempty"`
	// Rule is where the rule is that decided about a call of a tool.
	Rule string `json:"rule,omitempty"`
	// Args are the arguments: given to Append as they came, written redacted. What is no JSON, or is over 16 KiB even
	// so, becomes its size.
	Args json.RawMessage `json:"args,omitempty"`
	// Paths are the paths seen in the arguments. At most 128 are written, refused ones first; PathsOmitted counts the rest.
	Paths        []Path `json:"paths,omitempty"`
	PathsOmitted int    `json:"paths_omitted,omitempty"`

	// End: the outcome (also of a question about roots) and how long it took, in milliseconds.
	Outcome Outcome `json:"outcome,omitempty"`
	MS      float64 `json:"ms,omitempty"`
	// Bytes is the size of the message, answer or line that the record is about.
	Bytes int64 `json:"bytes,omitempty"`
	// Text is an excerpt of what a peer wrote.
	Text string `json:"text,omitempty"`

	// From and To are who asked or told whom.
	From Party `json:"from,omitempty"`
	To   Party `json:"to,omitempty"`
	// Ask ties a RootsAnswered to its RootsAsked, and an Answered to its Asked.
	Ask string `json:"ask,omitempty"`
	// Roots is the list answered. Equal says whether it is the list of the configured directories; nil where there is
	// nothing to compare.
	Roots []Root `json:"roots,omitempty"`
	Equal *bool  `json:"equal,omitempty"`
	// Before and After are the effective roots of a change.
	Before []Dir `json:"before,omitempty"`
	After  []Dir `json:"after,omitempty"`

	// Prev and Hash chain the records, see the package comment. Append sets them.
	Prev string `json:"prev"`
	Hash string `json:"hash"`
}

// Path is a path argument as it was judged, or seen and not judged.
type Path struct {
	// Arg is the JSON pointer of the argument.
	Arg string `json:"arg"`
	// Given is the argument as given, Resolved the path the server would open.
	Given    string `json:"given,omitempty"`
	Resolved string `json:"resolved,omitempty"`
	// Dir is set when Resolved is a directory.
	Dir bool `json:"dir,omitempty"`
	// Root is the name of the root that holds it, or where that has none its last path element; Rel the path below it.
	Root string `json:"root,omitempty"`
	Rel  string `json:"rel,omitempty"`
	// Verdict is empty when it was not judged. Code says why.
	Verdict Verdict `json:"verdict,omitempty"`
	Code    string  `json:"code,omitempty"`
}

// Dir is a configured or an effective directory.
type Dir struct {
	Name string `json:"name,omitempty"`
	Path string `json:"path"`
	// Access is rw, ro, or another short word for what is allowed.
	Access string `json:"access,omitempty"`
	Pinned bool   `json:"pinned,omitempty"`
	// Origin is where it came from: "--root", "client", "rootbound.toml:12".
	Origin string `json:"origin,omitempty"`
}

// Root is a root as told.
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}
