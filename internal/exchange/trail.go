package exchange

import (
	"sync"
	"time"
)

// Trail is what the stages decided about one request, for the log. It is safe for concurrent use.
type Trail struct {
	// ID is short and shown to the model and to the person: the way from a refusal to its story.
	ID string
	// Begun is when the request came.
	Begun time.Time

	mu       sync.Mutex
	notes    []Note
	record   func() error // nil when nobody waits for Record
	recorded bool
}

// Note is one decision or remark.
type Note struct {
	// Stage says who made it.
	Stage string
	// Denied is set when the request does not go on, Part when a part of it does not and the rest does.
	Denied, Part bool
	// Code is a word for programs, Text a sentence for people, Fix what to write for another decision.
	Code, Text, Fix string
	// Path is what it is about, where that is a path.
	Path string
	// Detail is what the stage and the log's writer agree on, or nil.
	Detail any
}

// NewTrail returns an empty trail.
func NewTrail(id string, begun time.Time) *Trail { return &Trail{ID: id, Begun: begun} }

// Add adds a note.
func (t *Trail) Add(n Note) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, n)
}

// Reset forgets the notes, for another try that begins now.
func (t *Trail) Reset(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes, t.Begun = nil, now
}

// OnRecord leaves it to the server when the request is written to the log: record is called once, by Record.
func (t *Trail) OnRecord(record func() error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record = sync.OnceValue(func() error {
		err := record() // it reads the notes
		t.mu.Lock()
		defer t.mu.Unlock()
		t.recorded = err == nil
		return err
	})
}

// Record has the request written to the log, unless it is there: it goes on, and what it does begins now. With an error
// it is to do nothing. A server that decides about paths by itself calls it before it changes something; for who only reads
// it is called before the answer goes out. Whoever comes while it is written waits for that.
func (t *Trail) Record() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	record := t.record
	t.mu.Unlock()
	if record == nil {
		return nil
	}
	return record()
}

// Recorded reports whether Record has written the request to the log.
func (t *Trail) Recorded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recorded
}

// Notes returns what was added, in order.
func (t *Trail) Notes() []Note {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Note(nil), t.notes...)
}
