package wire

import (
	"errors"
	"io"
	"slices"
	"sync"
)

// ErrStalled is what a writer ends with when its peer does not read what it asked for.
var ErrStalled = errors.New("the peer does not read")

const (
	backpressure = 1 << 20  // bytes waiting at which Send waits
	stalled      = 64 << 20 // bytes waiting at which the peer counts as one that does not read
	maxQueue     = 1 << 10  // messages for which there is room when none waits
)

// Writer writes messages, whole and in order, from any goroutine. It does not close what it writes to. A write that hangs holds
// up what is behind it until what it writes to is closed.
type Writer struct {
	write func(m *Message) error

	mu      sync.Mutex
	room    sync.Cond  // waiting went down, or err was set
	queue   []*Message // those before head were taken out
	head    int
	waiting int  // bytes in queue
	busy    bool // a goroutine is writing
	err     error
	done    chan struct{} // closed with err
}

// NewWriter returns a writer of lines to w.
func NewWriter(w io.Writer) *Writer {
	return NewWriterFunc(func(m *Message) error {
		err := writeLine(w, m.raw)
		m.giveBack()
		return err
	})
}

// NewWriterFunc returns a writer to what takes messages one at a time, and may keep them.
func NewWriterFunc(write func(m *Message) error) *Writer {
	w := &Writer{write: write, done: make(chan struct{})}
	w.room.L = &w.mu
	return w
}

// Send writes m, behind what waits already. It waits while the peer does not read: for messages that pass through, so
// that a slow peer slows down its own direction.
func (w *Writer) Send(m *Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(m)
	return w.flush()
}

// Put takes m behind what waits already, and never waits. Whoever puts calls Flush soon, which may be after a lock is let
// go that keeps messages in order.
func (w *Writer) Put(m *Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(m)
}

func (w *Writer) put(m *Message) {
	if w.err == nil {
		w.queue = append(w.queue, m)
		w.waiting += len(m.Bytes())
	}
}

// Flush writes what waits, or waits until it is no more than a little when another goroutine writes.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

// flush is Flush. The caller holds mu, which is let go meanwhile.
func (w *Writer) flush() error {
	if w.begin() {
		w.drain()
	}
	for w.waiting > backpressure && w.err == nil {
		w.room.Wait()
	}
	return w.err
}

// Queue has m written by another goroutine, behind what waits already, and never waits: for answers to the peer itself,
// which may be waiting for us to read.
func (w *Writer) Queue(m *Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(m)
	if w.err == nil && w.waiting > stalled+len(m.Bytes()) {
		w.fail(ErrStalled)
	}
	if w.begin() {
		go func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.drain()
		}()
	}
	return w.err
}

// Done is closed when the writer failed.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Wait waits until nobody writes any more, or the writer failed: then all is written that was sent, queued or flushed.
func (w *Writer) Wait() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.busy && w.err == nil {
		w.room.Wait()
	}
	return w.err
}

// Fail ends the writer: what waits is dropped, and every further call returns err.
func (w *Writer) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(err)
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
		w.queue, w.head, w.waiting = nil, 0, 0
		close(w.done)
	}
	w.room.Broadcast()
}

// begin makes w busy, and reports whether it did: something waits, and nobody writes. The caller holds mu and has it drained.
func (w *Writer) begin() bool {
	if w.err != nil || w.busy || len(w.queue) == 0 {
		return false
	}
	w.busy = true
	return true
}

// drain writes what waits until nothing does. The caller made w busy and holds mu, which is let go meanwhile.
func (w *Writer) drain() {
	for m := w.next(); m != nil; m = w.next() {
		w.mu.Unlock()
		err := w.write(m)
		w.mu.Lock()
		if err != nil {
			w.fail(err)
		}
	}
	w.busy = false
	w.room.Broadcast()
}

// next takes out the message that is to be written next, nil when there is none. The caller holds mu.
func (w *Writer) next() *Message {
	if len(w.queue) == 0 {
		return nil
	}
	m := w.queue[w.head]
	w.queue[w.head] = nil
	w.waiting -= len(m.raw)
	switch w.head++; {
	case w.head == len(w.queue):
		w.queue, w.head = w.queue[:0], 0
		if cap(w.queue) > maxQueue {
			w.queue = nil
		}
	case w.head >= maxQueue: // it never becomes empty
		w.queue, w.head = slices.Delete(w.queue, 0, w.head), 0
	}
	w.room.Broadcast()
	return m
}

// writeLine writes one line with one call where that is cheap, so that a message is seldom seen in two parts.
func writeLine(w io.Writer, b []byte) error {
	if len(b) < cap(b) { // the line end may be at hand; never write into bytes that others may hold
		if full := b[:len(b)+1]; full[len(b)] == '\n' {
			_, err := w.Write(full)
			return err
		}
	}
	line := make([]byte, 0, len(b)+1)
	line = append(append(line, b...), '\n')
	_, err := w.Write(line)
	return err
}
