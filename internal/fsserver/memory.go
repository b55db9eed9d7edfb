package fsserver

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
)

const (
	// maxLarge is how many calls have a large file in memory at one time, and maxWalks how many walk. Others wait: each of
	// them may need some ten times the longest text.
	maxLarge = 4
	maxWalks = 4
	// large is the size of a file, in bytes, from which it is large.
	large = 256 << 10
)

const (
	// maxHeldUp is how many calls may wait for a file system that does not answer, beside those that have a slot.
	maxHeldUp = 16
	// maxCalls is how many calls are worked on at one time. Each that a file system holds up keeps a thread, of which Go has 10,000.
	maxCalls = 4096
)

// slots are what calls that need much memory wait for.
type slots struct {
	large, walks chan struct{}
	calls        atomic.Int64 // that are not answered
	most         int64        // of them
	heldUp       atomic.Int64 // calls that have let go of theirs
	waits        waits
}

// waits are how long is waited.
type waits struct {
	walk  time.Duration // until a walk is answered with what it has found
	slot  time.Duration // for a slot, when as many calls are held up as may be
	still time.Duration // until a call of which nothing comes counts as held up
}

func newSlots(w waits) *slots {
	return &slots{most: maxCalls, large: make(chan struct{}, maxLarge), walks: make(chan struct{}, maxWalks), waits: w}
}

// slot is that of one call, once it has taken one. It is kept until the answer is written: what a client asks for and
// does not read is in memory too. Only a call that is held up by a file system lets go of it before, for the kernel may not give
// it back for ever. A nil slot takes none.
type slot struct {
	all     *slots
	tooMany bool         // calls were there before it
	moved   atomic.Int64 // what grows as long as the call gets on

	mu      sync.Mutex
	of      chan struct{} // which it has taken
	gone    bool          // it has let go of it, and counts as held up
	working int           // the call, until it has an answer, and the walk that may go on behind it
	written bool
	timer   *time.Timer
	seen    int64 // moved, when it was looked at last
}

// newSlot returns the slot of a call that begins.
func (s *slots) newSlot() *slot { return &slot{all: s, working: 1, tooMany: s.calls.Add(1) > s.most} }

// refused says why a call is not to be worked on.
func (t *slot) refused() error {
	if t == nil || !t.tooMany {
		return nil
	}
	return refuse(codeHeldUp, "%d calls are not answered yet, and no more are worked on at one time. Wait for some of them; where none is "+
		"answered, a file system does not answer.", t.all.most)
}

// try takes a slot if one is free, and says whether the call has one now.
func (t *slot) try(of chan struct{}) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != nil {
		return true
	}
	select {
	case of <- struct{}{}:
		t.taken(of)
		return true
	default:
		return false
	}
}

// taken notes what the slot is of. The caller holds mu.
func (t *slot) taken(of chan struct{}) {
	t.of, t.seen = of, t.moved.Load()
	t.timer = time.AfterFunc(t.all.waits.still, t.look)
}

// take waits for a slot, unless the call has one already.
func (t *slot) take(ctx context.Context, of chan struct{}) error {
	for !t.try(of) {
		select {
		case of <- struct{}{}:
			t.mu.Lock()
			defer t.mu.Unlock()
			t.taken(of)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(t.all.waits.slot):
			if t.all.heldUp.Load() >= maxHeldUp {
				return refuse(codeHeldUp, "A file system does not answer, and %d calls wait for it, so no more are begun that may need much memory. "+
					"What is small can be read and listed. A person can see to that file system, or end this server and start it again.", maxHeldUp)
			}
		}
	}
	return nil
}

// look lets go of the slot when nothing has come of the call since it looked last.
func (t *slot) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working == 0 {
		return
	}
	if moved := t.moved.Load(); moved != t.seen {
		t.seen = moved
	} else if t.all.heldUp.Add(1) <= maxHeldUp {
		t.gone = true
		<-t.of
		return
	} else {
		t.all.heldUp.Add(-1)
	}
	t.timer.Reset(t.all.waits.still)
}

// moves says that the call gets on.
func (t *slot) moves() {
	if t != nil {
		t.moved.Add(1)
	}
}

// begin says that something works for the call that may go on behind it, until end.
func (t *slot) begin() {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.working++
	}
}

func (t *slot) end() {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.working--
		t.free()
	}
}

// leave says that the answer is written.
func (t *slot) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = true
	t.all.calls.Add(-1)
	t.free()
}

// free gives back what was taken when nothing needs it any more. The caller holds mu.
func (t *slot) free() {
	switch {
	case t.working > 0 || !t.written || t.of == nil:
	case t.gone:
		t.all.heldUp.Add(-1)
	default:
		t.timer.Stop()
		<-t.of
	}
}

// lent is memory of one call for its text, until its answer is made of it. Calls after it use it again: fresh memory costs more
// than what is written to it. The zero value has none.
type lent struct{ memory *[]byte }

var texts = sync.Pool{New: func() any { return new([]byte) }}

// take returns the memory, empty, with room for so many bytes. What was taken before is gone then.
func (l *lent) take(size int) []byte {
	if l == nil {
		return make([]byte, 0, size)
	}
	if l.memory == nil {
		l.memory = texts.Get().(*[]byte)
	}
	*l.memory = slices.Grow((*l.memory)[:0], size)
	return *l.memory
}

func (l *lent) giveBack() {
	if l.memory != nil {
		texts.Put(l.memory)
	}
}

// work makes a handler of what may take a slot.
func (s *slots) work(f func(ctx context.Context, r *exchange.Request, t *slot) exchange.Outcome) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		t := s.newSlot()
		h := exchange.Work(func(ctx context.Context, r *exchange.Request) exchange.Outcome {
			defer t.end()
			return f(ctx, r, t)
		})
		h.Handle(ctx, r, func(o exchange.Outcome) {
			reply(o)
			t.leave()
		})
	})
}

// opened opens a file and describes it, and takes a slot when it is large. Whoever waits for that holds nothing open.
func (c *call) opened(open func() (*os.File, error)) (*os.File, fs.FileInfo, error) {
	for {
		f, err := open()
		if err != nil {
			return nil, nil, err
		}
		info, err := f.Stat()
		if err == nil && (info.Size() <= large || c.slot.try(c.slots.large)) {
			return f, info, nil
		}
		f.Close()
		if err == nil {
			err = c.slot.take(c.ctx, c.slots.large)
		}
		if err != nil {
			return nil, nil, err
		}
	}
}
