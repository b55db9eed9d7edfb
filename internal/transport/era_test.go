package transport

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
)

// memory remembers for as long as a test.
type memory struct {
	mu     sync.Mutex
	only   exchange.Era
	server string
	known  bool
}

func (m *memory) Recall() (exchange.Era, string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.only, m.server, m.known
}

func (m *memory) Remember(only exchange.Era, server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.only, m.server, m.known = only, server, true
}

func (m *memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = false
}

// What is found out is in the log, and remembered where it says what to try first. What is wrong is forgotten, and so is what
// another version of the server said.
func TestWhatIsFoundOutIsNotedAndRemembered(t *testing.T) {
	t.Parallel()
	onlyLegacy, onlyModern, nothing := &memory{only: exchange.Legacy, server: "s 1", known: true}, &memory{only: exchange.Modern, server: "s 1", known: true}, &memory{}
	newer := &memory{only: exchange.Legacy, server: "s 0", known: true}
	for _, tt := range []struct {
		archive, name string
		before, after *memory
		note          string
	}{
		{"eras", "fallback", nothing, onlyLegacy, "the client speaks revision 2026-07-28 and the server the handshake revisions: a bridge is between them"},
		{"eras", "exit-on-discover", nothing, onlyLegacy, "exit status 1, while it was found out what it speaks"},
		{"bridge-up", "lists", nothing, onlyModern, "the client speaks the handshake revisions and the server revision 2026-07-28: a bridge is between them"},
		{"ordinary", "legacy", nothing, nothing, "the client and the server speak the handshake revisions"},
		{"ordinary", "modern", nothing, nothing, "the client and the server speak revision 2026-07-28"},
		{"bridge-down", "remembered", onlyLegacy, onlyLegacy, "a bridge is between them"},
		{"bridge-down", "remembered", newer, nothing, "a bridge is between them"},
		{"bridge-down", "remembered-wrong", onlyLegacy, nothing, "the client and the server speak revision 2026-07-28"},
		{"bridge-up", "remembered-wrong", onlyModern, nothing, "the client and the server speak the handshake revisions"},
		{"bridge-up", "lists", onlyLegacy, onlyModern, "a bridge is between them"}, // of no use, and wrong
		{"bridge-up", "neither", nothing, nothing, "the server takes neither the handshake revisions nor revision 2026-07-28"},
	} {
		tr := transcript(t, tt.archive, tt.name)
		o := options(t, tr)
		m := &memory{only: tt.before.only, server: tt.before.server, known: tt.before.known}
		o.Memory = m
		var mu sync.Mutex
		var notes strings.Builder
		o.Note = func(f string, a ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&notes, f+"\n", a...)
		}
		tr.Play(t, nil, passthrough(o))
		mu.Lock()
		if got := notes.String(); !strings.Contains(got, tt.note) {
			t.Errorf("%s/%s: noted %q, want %q", tt.archive, tt.name, got, tt.note)
		}
		mu.Unlock()
		only, server, known := m.Recall()
		if known != tt.after.known || known && (only != tt.after.only || server != tt.after.server) {
			t.Errorf("%s/%s: it remembers %v %q %v, want %v %q %v", tt.archive, tt.name, only, server, known, tt.after.only, tt.after.server, tt.after.known)
		}
	}
}
