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

	mu    sync.Mutex
	notes []Note
}

// Note is one decision or remark.
type Note struct {
	// Stage says who made it.
	Stage string
	// Denied is set when the request does not go on.
	Denied bool
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

// Notes returns what was added, in order.
func (t *Trail) Notes() []Note {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Note(nil), t.notes...)
}
