package approval

import (
	"sync"
	"sync/atomic"
	"time"
)

// Now is what a guard is at the moment. Its JSON is what `rootbound status --json` prints, so names are not changed in it.
type Now struct {
	// Server is the server's name, and PID the process of its guard, which runs since Since and is of Version.
	Server  string    `json:"server"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Version string    `json:"version"`
	// Command is how the server is started, or URL where it is when it is on another machine, both without secrets. Listening
	// is where clients reach the guard over HTTP.
	Command   []string `json:"command,omitempty"`
	URL       string   `json:"url,omitempty"`
	Listening string   `json:"listening,omitempty"`
	// Log is the file that the run is logged in; empty when it is not.
	Log string `json:"log,omitempty"`
	// Source says where the configured directories come from: SourceCode tells it as "flags", "file", "arguments", "workspace" or
	// "nowhere". Roots, Why and WhyCode are those of the first client, or where there is none, what would hold for one.
	Source     string `json:"source"`
	SourceCode string `json:"source_code"`
	Roots      []Root `json:"roots"`
	Why        string `json:"why"`
	WhyCode    string `json:"why_code"`
	// List is what of a configuration file they follow; nil when nothing.
	List *List `json:"list,omitempty"`
	// Layers say by what the server is held, and by what it is not.
	Layers []Layer `json:"layers"`
	// Clients are those that are there, the oldest first, and More how many are left out.
	Clients []Client `json:"clients"`
	More    int      `json:"more_clients,omitempty"`
	// Paused is set while every call is held, and Questions is how many wait for a person. Closed says why nobody can answer
	// them over the socket.
	Paused    bool   `json:"paused"`
	Questions int    `json:"questions"`
	Closed    string `json:"closed,omitempty"`
	// Minute and Total count calls: of about the last minute, and since the guard runs.
	Minute Counts `json:"minute"`
	Total  Counts `json:"total"`
	// Refused is the last call that was refused.
	Refused *Refusal `json:"refused,omitempty"`
}

// List is a list of roots of a configuration file: that of a server, or the one for all; or its active workspace.
type List struct {
	File   string `json:"file"`
	Server string `json:"server,omitempty"`
	Active bool   `json:"active,omitempty"`
}

// MaxClients is how many clients a Now has at most.
const MaxClients = 32

// Root is a directory, or one file, that is open to a server, or is not though it is configured.
type Root struct {
	Name string `json:"name,omitempty"`
	Path string `json:"path"`
	// Access is "rw", "no-delete", "ro" or "none". Source says where it comes from.
	Access string `json:"access"`
	Source string `json:"source,omitempty"`
	Pinned bool   `json:"pinned,omitempty"`
	File   bool   `json:"file,omitempty"`
	// State says whether it is open now, and Reason why it is Unavailable, which Code tells as roots.Reason.
	State  RootState `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Code   string    `json:"code,omitempty"`
}

// RootState says whether a root is open now.
type RootState string

const (
	// Open: it holds, and it is there.
	Open RootState = "open"
	// Unavailable: it would hold, and is gone or cannot be opened.
	Unavailable RootState = "unavailable"
	// Closed: it is configured, and the client does not open it.
	Closed RootState = "closed"
	// WaitsForConsent: the client opens it, and a person has not let the server have it.
	WaitsForConsent RootState = "waiting"
)

// Layer is one of the things that hold a server. Name is "told", "checked", "contained" or "confined", and Text says it in the
// words of the start line, also of one that does not hold.
type Layer struct {
	Name  string `json:"name"`
	Holds bool   `json:"holds"`
	Text  string `json:"text"`
}

// Client is one that a guard knows.
type Client struct {
	// Session tells it from others in the log; it is empty for clients that nothing connects, of which the last is told.
	Session string `json:"session,omitempty"`
	// Name and Version are what it says of itself.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Revision is the protocol revision that is spoken with it, and ServerRevision that with the server. From 2026-07-28 on they
	// are those without a handshake: where the two are of different kinds, they are translated.
	Revision       string `json:"revision,omitempty"`
	ServerRevision string `json:"server_revision,omitempty"`
	// Roots are what holds for it, and Why says why. WhyCode tells the case: "nothing-configured", "not-asked", "unanswered",
	// "narrowed", "no-overlap", "revoked", "only-bad" or "accepted", as in roots.Why.
	Roots   []Root `json:"roots"`
	Why     string `json:"why"`
	WhyCode string `json:"why_code"`
}

// Counts are calls by what became of them. Only what does something counts (tools, resources, prompts, completions), and what
// was refused.
type Counts struct {
	// Allowed went on by the rules alone, Approved since a person or a grant said yes, Denied did not.
	Allowed  int `json:"allowed"`
	Approved int `json:"approved"`
	Denied   int `json:"denied"`
}

// Sum is how many there are.
func (c Counts) Sum() int { return c.Allowed + c.Approved + c.Denied }

func (c *Counts) add(d Counts) {
	c.Allowed += d.Allowed
	c.Approved += d.Approved
	c.Denied += d.Denied
}

// Refusal is a call that was refused.
type Refusal struct {
	// Call is its id, by which `rootbound why` tells its story.
	Call   string    `json:"call"`
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Tool   string    `json:"tool,omitempty"`
	// Path is the first path that was refused, as NAME:relative where it is in a root.
	Path   string `json:"path,omitempty"`
	Reason string `json:"reason"`
	// Code tells why it was, as in the log.
	Code string `json:"code,omitempty"`
	Fix  string `json:"fix,omitempty"`
}

// Board is what a guard tells of itself to those who look. A nil one takes everything and tells nothing. It is safe for
// concurrent use.
type Board struct {
	now     func() time.Time
	watched atomic.Int32

	mu      sync.Mutex
	read    func() Now
	total   Counts
	slots   [slots]slot
	refused *Refusal
	changed chan struct{} // closed with the next change
}

// A minute is counted in so many parts, so that it costs as much whatever happens in it.
const (
	slots    = 12
	slotTime = time.Minute / slots
)

// slot is one of them.
type slot struct {
	n int64 // of all there are
	Counts
}

// NewBoard returns one on which nothing is counted. Now is the clock; nil is time.Now.
func NewBoard(now func() time.Time) *Board {
	if now == nil {
		now = time.Now
	}
	return &Board{now: now, changed: make(chan struct{})}
}

// Read says how everything is found out that is not counted here. It is called for those who look, from any goroutine.
func (b *Board) Read(f func() Now) {
	b.mu.Lock()
	b.read = f
	b.mu.Unlock()
	b.Changed()
}

// Count counts a call that ended at a time, with one of the counts being 1. Refused is set for one that was denied.
func (b *Board) Count(at time.Time, c Counts, refused *Refusal) {
	if b == nil {
		return
	}
	n := at.UnixNano() / int64(slotTime)
	b.mu.Lock()
	b.total.add(c)
	s := &b.slots[((n%slots)+slots)%slots] // a clock may be before 1970
	if s.n != n {
		*s = slot{n: n}
	}
	s.add(c)
	if refused != nil {
		b.refused = refused
	}
	b.mu.Unlock()
	b.Changed()
}

// Changed says that what Read finds out may have changed. It costs nothing while nobody looks.
func (b *Board) Changed() {
	if b == nil || b.watched.Load() == 0 {
		return
	}
	b.mu.Lock()
	close(b.changed)
	b.changed = make(chan struct{})
	b.mu.Unlock()
}

// news returns a channel that is closed with the next change.
func (b *Board) news() <-chan struct{} {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// look returns what there is to tell, and when that changes by itself; the zero time for never.
func (b *Board) look() (now Now, next time.Time) {
	if b == nil {
		return Now{}, time.Time{}
	}
	b.mu.Lock()
	read := b.read
	b.mu.Unlock()
	if read != nil {
		now = read()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now.Total, now.Refused = b.total, b.refused
	at := b.now().UnixNano() / int64(slotTime)
	for i := at - slots + 1; i <= at; i++ {
		if s := b.slots[((i%slots)+slots)%slots]; s.n == i && s.Counts != (Counts{}) {
			now.Minute.add(s.Counts)
			if next.IsZero() {
				next = time.Unix(0, (i+slots)*int64(slotTime))
			}
		}
	}
	return now, next
}
