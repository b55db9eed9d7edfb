package exchange

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
)

// Trail is what the stages decided about one request, for the log. It is safe for concurrent use.
type Trail struct {
	// ID is short and shown to the model and to the person: the way from a refusal to its story.
	ID string

	mu    sync.Mutex
	notes []Note
}

// Note is one decision or remark.
type Note struct {
	// Stage says who made it.
	Stage string
	// Denied is set when the request does not go on.
	Denied bool
	// Code is a word for programs, Text a sentence for people.
	Code, Text string
	// Detail is what the stage and the log's writer agree on, or nil.
	Detail any
}

// NewTrail returns a trail with a fresh id.
func NewTrail() *Trail {
	var b [4]byte
	rand.Read(b[:])
	return &Trail{ID: "c" + hex.EncodeToString(b[:])}
}

// Add adds a note.
func (t *Trail) Add(n Note) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, n)
}

// Notes returns what was added, in order.
func (t *Trail) Notes() []Note {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Note(nil), t.notes...)
}
