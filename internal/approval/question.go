package approval

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/unseen"
)

// Question is one call that a person is asked about.
type Question struct {
	// ID is that of the call, by which a person names it.
	ID string `json:"id"`
	// Server, Tool and Client say who wants what of whom.
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Client string `json:"client,omitempty"`
	// Head says it all in one line; Facts say what will happen, one a line.
	Head  string   `json:"head"`
	Facts []string `json:"facts,omitempty"`
	// Diff is what a text would become, as far as that is known.
	Diff string `json:"diff,omitempty"`
	// Args are the arguments in their canonical form, and Size is how long they are. Short is set where they and the diff are left
	// out, since there is too much of them in a list of questions.
	Args  json.RawMessage `json:"args,omitempty"`
	Size  int             `json:"size"`
	Short bool            `json:"short,omitempty"`
	// Digest names exactly this call: its server, definition, tool and arguments.
	Digest string `json:"digest"`
	// Why says why it is asked, with Rule, where the rule is that asks. Code tells it from others where it is the program's own
	// sentence, about the arguments WhyArgs: see policy.Decision.
	Why     string   `json:"why,omitempty"`
	Rule    string   `json:"rule,omitempty"`
	Code    string   `json:"code,omitempty"`
	WhyArgs []string `json:"why_args,omitempty"`
	// Choices are the answers that are offered. Remember is set when a yes may be good for more than this call, Same when for
	// no other arguments.
	Choices  []Choice `json:"choices"`
	Remember bool     `json:"remember,omitempty"`
	Same     bool     `json:"same,omitempty"`
	// Kept is what a yes for more may be good for: "never", no more than this call; "call", the same arguments; "root", what the same
	// rule asks for in the root of the places; "tool", the tool with any arguments.
	Kept string `json:"kept,omitempty"`
	// Effect is what the tool does at most: "read", "write", "delete" or "unknown". From is who says so, and FromCode tells who
	// that is where it is not a file: "own", "profile", "annotations" or "kernel".
	Effect   string `json:"effect,omitempty"`
	From     string `json:"from,omitempty"`
	FromCode string `json:"from_code,omitempty"`
	// Places are where its paths lead, the first MaxPlaces of them, and what is there.
	Places []Place `json:"places,omitempty"`
	// Targets are where its paths lead, and Hosts where its URLs do: a yes for more must hold all of them.
	Targets []string `json:"targets,omitempty"`
	Hosts   []string `json:"hosts,omitempty"`
	// Asked is when, and Until how long it waits; the zero time for one that waits until the guard goes on.
	Asked time.Time `json:"asked"`
	Until time.Time `json:"until,omitzero"`
	// Paused is set for a call that waits because everything does.
	Paused bool `json:"paused,omitempty"`
	// Behind is how many calls like it wait for their turn.
	Behind int `json:"behind,omitempty"`
}

// MaxPlaces is how many places a question has at most.
const MaxPlaces = 64

// Place is where a path of a call leads.
type Place struct {
	// Arg is the argument, and Given what is written there. Path is where that leads, in Root, which allows Access ("rw",
	// "no-delete", "ro" or "none").
	Arg    string `json:"arg"`
	Given  string `json:"given"`
	Path   string `json:"path"`
	Root   string `json:"root"`
	Access string `json:"access"`
	// Is is what is there now: "nothing", "file", "directory", "other" or "unknown"; Size is that of a file, in bytes. Link is set
	// when what is written is itself a link.
	Is   string `json:"is"`
	Size int64  `json:"size,omitempty"`
	Link bool   `json:"link,omitempty"`
}

// Choice is what a person chose. The zero value denies; with Allow alone it is for this call, once.
type Choice struct {
	Allow bool `json:"allow"`
	// Session makes it good for this session: for what Scope says.
	Session bool `json:"session,omitempty"`
	// Scope says what a yes for the session is good for, in words.
	Scope string `json:"scope,omitempty"`
	// Under makes it good for the same tool, where all paths of a call are beneath a directory; Host where all its URLs
	// lead to a host. For is how long, else WorkingDay.
	Under string        `json:"under,omitempty"`
	Host  string        `json:"host,omitempty"`
	For   time.Duration `json:"for,omitempty"`
}

// WorkingDay is how long a yes is good for that outlives its session, where nobody says how long; MaxFor is the most.
const (
	WorkingDay = 8 * time.Hour
	MaxFor     = 30 * 24 * time.Hour
)

// Once reports whether it is good for one call only.
func (c Choice) Once() bool { return !c.Session && c.Under == "" && c.Host == "" && c.For == 0 }

// Word is how it is written where a person chooses.
func (c Choice) Word() string {
	switch {
	case !c.Allow:
		return "deny"
	case c.Under != "":
		return "allow under " + unseen.Visible(c.Under)
	case c.Host != "":
		return "allow host " + unseen.Visible(c.Host)
	case c.Session:
		return "allow this session"
	case c.For > 0:
		return "allow for " + c.For.String()
	}
	return "allow once"
}

// String says what it allows.
func (c Choice) String() string {
	text := c.Word()
	if c.Session && c.Scope != "" {
		text += ": " + c.Scope
	}
	if c.For > 0 && (c.Session || c.Under != "" || c.Host != "") {
		text += " for " + c.For.String()
	}
	return text
}

// Choice finds what a word stands for among what is offered. What is not offered denies.
func (q *Question) Choice(word string) Choice {
	for _, c := range q.Choices {
		if c.Word() == word {
			return c
		}
	}
	return Choice{}
}

// Check says why a choice is none for this question. It completes a choice with what the question offers for it.
func (q *Question) Check(c Choice) (Choice, error) {
	switch {
	case !c.Allow:
		return Choice{}, nil
	case c.Once():
		return Choice{Allow: true}, nil
	case q.Paused:
		return c, fmt.Errorf("the guard is paused, and a call that is let through is let through once")
	case !q.Remember:
		return c, fmt.Errorf("a yes to this is never remembered: allow it once")
	case c.For < 0 || c.For > MaxFor:
		return c, fmt.Errorf("a yes is good for at most %v", MaxFor)
	case q.Same && (c.Under != "" || c.Host != ""):
		return c, fmt.Errorf("a yes to this is for the same arguments only: allow it once, for the session or for some time")
	}
	if c.Under != "" {
		c.Under = filepath.Clean(c.Under)
		switch {
		case len(q.Targets) == 0:
			return c, fmt.Errorf("the call names no path, so it is not beneath %q", c.Under)
		case len(q.Hosts) > 0:
			return c, fmt.Errorf("the call leads to the host %q too, which is not beneath %q", q.Hosts[0], c.Under)
		}
		if i := slices.IndexFunc(q.Targets, func(t string) bool { return !beneath(t, c.Under) }); i >= 0 {
			return c, fmt.Errorf("%q is not beneath %q", q.Targets[i], c.Under)
		}
	}
	if c.Host != "" {
		if len(q.Hosts) == 0 || slices.ContainsFunc(q.Hosts, func(h string) bool { return h != c.Host }) {
			return c, fmt.Errorf("the call does not lead to the host %q and no other", c.Host)
		}
		if len(q.Targets) > 0 {
			return c, fmt.Errorf("the call names paths too, so it is not for the host %q alone", c.Host)
		}
	}
	if c.Session {
		i := slices.IndexFunc(q.Choices, func(o Choice) bool { return o.Session && o.Under == "" && o.Host == "" })
		if i < 0 {
			return c, fmt.Errorf("a yes for the session is not offered for this call")
		}
		c.Scope = q.Choices[i].Scope
	}
	return c, nil
}

// beneath reports whether a path is a directory or in it. Both are clean and without links.
func beneath(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == filepath.Separator || dir[len(dir)-1] == filepath.Separator)
}

// Text is the question for a place that shows plain text and that is not ours: what nobody sees is written out, and it has at
// most about max bytes. What was left out is said.
func (q *Question) Text(max int) string {
	var b strings.Builder
	b.WriteString(Line(q.Head, 400) + "\n")
	end := ""
	if q.Why != "" {
		end = "\nwhy: " + Line(q.Why, 400)
	}
	end += "\ndigest: " + q.Digest
	tail := fmt.Sprintf("\nall of it: rootbound approve show %s", q.ID)
	const notice = 64 // for what is said of what is left out
	// fit writes lines for as long as there is room, and returns how many are left.
	fit := func(lines []string, room int) (left int) {
		for _, line := range lines {
			if left > 0 || b.Len()+len(line)+1 > room-notice {
				left++
				continue
			}
			b.WriteString("\n" + line)
		}
		return left
	}
	var lines []string
	for _, f := range q.Facts {
		lines = append(lines, Line(f, 400))
	}
	room := max - len(end) - len(tail)
	if left := fit(lines, room-notice); left > 0 {
		fmt.Fprintf(&b, "\n(%d more such lines are not shown here)", left)
	}
	b.WriteString(end)
	if q.Diff != "" {
		lines = nil
		for line := range strings.Lines(q.Diff) {
			lines = append(lines, Line(strings.TrimSuffix(line, "\n"), 240))
		}
		b.WriteString("\n")
		if left := fit(lines, max-len(tail)); left > 0 {
			fmt.Fprintf(&b, "\n(%d more lines of the change are not shown here)", left)
		}
	}
	return strings.TrimRight(b.String(), "\n") + tail
}

// Line makes one line of a text of a peer, of at most about max bytes: line ends and what nobody sees are written out.
func Line(s string, max int) string {
	cut := len(s)
	s = Cut(s, max)
	cut -= len(s)
	s = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", "  ", "\f", `\f`).Replace(unseen.Visible(strings.ToValidUTF8(s, "�")))
	if cut > 0 {
		s += fmt.Sprintf("… (%d bytes more)", cut)
	}
	return s
}

// Cut returns the beginning of a text, of at most max bytes and of whole characters.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && s[max]&0xc0 == 0x80 {
		max--
	}
	return s[:max]
}

// Answer is how a question ended. The zero value denies.
type Answer struct {
	Choice
	// Note is what the person said besides.
	Note string
	// Args are what the arguments are to be in the place of those that were asked about; nil leaves them.
	Args []byte
	// Road is by which it came, and Who is known of who gave it.
	Road Road
	Who  string
}

// Road is a way by which a question ends.
type Road string

const (
	// ByClient: the client was asked, and somebody there answered.
	ByClient Road = "client"
	// ByTerminal: a person answered over the socket, with a command.
	ByTerminal Road = "terminal"
	// ByPage: a person answered over the socket, on the page.
	ByPage Road = "page"
	// ByGrant: it was granted before.
	ByGrant Road = "grant"
	// Declined and Dismissed: the client says that it was declined, or closed without an answer.
	Declined  Road = "client-declined"
	Dismissed Road = "client-dismissed"
	// Unasked: the client was asked to ask its person, and brought no answer.
	Unasked Road = "client-unasked"
	// TimedOut: nobody answered in time.
	TimedOut Road = "timeout"
	// Withdrawn: the call was cancelled, or its client went.
	Withdrawn Road = "withdrawn"
	// Flooded: too many questions were asked.
	Flooded Road = "flood"
	// ClockMoved: the clock was set while the question waited, so that it is not known whether the answer came in time.
	ClockMoved Road = "clock"
	// Resumed: a call that was held because of a pause goes on.
	Resumed Road = "resume"
)

// BySocket reports whether somebody answered over the socket.
func (r Road) BySocket() bool { return r == ByTerminal || r == ByPage }

// ByPerson reports whether somebody answered, by any road.
func (r Road) ByPerson() bool {
	return r == ByClient || r.BySocket() || r == Declined || r == Dismissed
}
