package exchange

import "sync"

// Tally counts what has not ended yet. The zero value counts nothing. It is safe for concurrent use.
type Tally struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed and dropped when n is 0; nil when nobody waits
}

// Add counts one more.
func (t *Tally) Add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

// Done counts one less.
func (t *Tally) Done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	t.wake()
}

// Empty returns a channel that is closed when the count is 0, now or as soon as it is.
func (t *Tally) Empty() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.empty == nil {
		t.empty = make(chan struct{})
	}
	empty := t.empty
	t.wake()
	return empty
}

func (t *Tally) wake() {
	if t.n == 0 && t.empty != nil {
		close(t.empty)
		t.empty = nil
	}
}
