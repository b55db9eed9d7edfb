package wire

import (
	"errors"
	"io"
	"sync"
)

// ErrStalled is what a writer ends with when its peer does not read what it asked for.
var ErrStalled = errors.New("the peer does not read")

const (
	backpressure = 1 << 20  // bytes waiting at which Send waits
	stalled      = 64 << 20 // bytes waiting at which the peer counts as one that does not read
)

// Writer writes messages as lines, whole and in order, from any goroutine. It does not close what it writes to.
type Writer struct {
	dst io.Writer

	mu      sync.Mutex
	room    sync.Cond // waiting went down, or err was set
	queue   []*Message
	waiting int  // bytes in queue
	busy    bool // a goroutine is writing
	err     error
	done    chan struct{} // closed with err
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer {
	wr := &Writer{dst: w, done: make(chan struct{})}
	wr.room.L = &wr.mu
	return wr
}

// Send writes m, behind what waits already. It waits while the peer does not read: for messages that pass through, so
// that a slow peer slows down its own direction.
func (w *Writer) Send(m *Message) error {
	w.Put(m)
	return w.Flush()
}

// Put takes m behind what waits already, and never waits. Whoever puts calls Flush soon, which may be after a lock is let
// go that keeps messages in order.
func (w *Writer) Put(m *Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.queue = append(w.queue, m)
		w.waiting += len(m.Bytes())
	}
}

// Flush writes what waits, or waits until it is no more than a little when another goroutine writes.
func (w *Writer) Flush() error {
	w.mu.Lock()
	if w.err == nil && !w.busy && len(w.queue) > 0 {
		w.busy = true
		w.mu.Unlock()
		w.drain(nil)
		w.mu.Lock()
	}
	for w.waiting > backpressure && w.err == nil {
		w.room.Wait()
	}
	defer w.mu.Unlock()
	return w.err
}

// Queue has m written by another goroutine, behind what waits already, and never waits: for answers to the peer itself,
// which may be waiting for us to read.
func (w *Writer) Queue(m *Message) error {
	w.Put(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && w.waiting > stalled+len(m.Bytes()) {
		w.fail(ErrStalled)
	}
	if w.err == nil && !w.busy && len(w.queue) > 0 {
		w.busy = true
		go w.drain(nil)
	}
	return w.err
}

// Done is closed when the writer failed.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Wait waits until everything was written, or the writer failed.
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
		w.queue, w.waiting = nil, 0
		close(w.done)
	}
	w.room.Broadcast()
}

// drain writes what waits until nothing does. The caller made w busy.
func (w *Writer) drain(err error) {
	for {
		w.mu.Lock()
		if err != nil {
			w.fail(err)
		}
		if w.err != nil || len(w.queue) == 0 {
			w.busy = false
			w.room.Broadcast()
			w.mu.Unlock()
			return
		}
		m := w.queue[0]
		w.queue[0] = nil
		w.queue = w.queue[1:]
		w.waiting -= len(m.raw)
		lent := m.lent
		m.lent = nil
		w.room.Broadcast()
		w.mu.Unlock()
		err = w.write(m.raw)
		if lent != nil && cap(*lent) <= maxLent {
			longBuffers.Put(lent)
		}
	}
}

// write writes one line with one call where that is cheap, so that a message is seldom seen in two parts.
func (w *Writer) write(b []byte) error {
	if len(b) < cap(b) { // the line end may be at hand; never write into bytes that others may hold
		if full := b[:len(b)+1]; full[len(b)] == '\n' {
			_, err := w.dst.Write(full)
			return err
		}
	}
	line := make([]byte, 0, len(b)+1)
	line = append(append(line, b...), '\n')
	_, err := w.dst.Write(line)
	return err
}
