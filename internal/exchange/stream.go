package exchange

import "github.com/rootbound/rootbound/internal/wire"

// Stream is where a client edge writes what belongs to one message of its client. On stdio all messages have one line
// together; over HTTP each has a stream of its own. It is safe for concurrent use.
type Stream interface {
	// Send tells or asks something, behind what was sent before.
	Send(m *wire.Message)
	// End sends the answer, or nothing when m is nil. On a stream of its own nothing comes behind it.
	End(m *wire.Message)
	// Refuse is End for the answer to what went no further. It never waits.
	Refuse(m *wire.Message)
	// Open reports whether somebody would hear a question that is sent now.
	Open() bool
}

// Shown is what a client showed with the message of a stream to say who it is.
func Shown(s Stream) string {
	if s, ok := s.(interface{ Shown() string }); ok {
		return s.Shown()
	}
	return ""
}

// OnLine returns the stream of all messages of a client that has one line for them. Whoever serves the line sees that it
// failed.
func OnLine(w *wire.Writer) Stream { return line{w} }

type line struct{ w *wire.Writer }

func (l line) Send(m *wire.Message)   { l.w.Send(m) }
func (l line) Refuse(m *wire.Message) { l.w.Queue(m) }
func (l line) Open() bool             { return true }
func (l line) End(m *wire.Message) {
	if m != nil {
		l.w.Send(m)
	}
}
