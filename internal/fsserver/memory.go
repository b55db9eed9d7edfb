package fsserver

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"sync"

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

// slots are what calls that need much memory wait for.
type slots struct{ large, walks chan struct{} }

func newSlots() slots { return slots{make(chan struct{}, maxLarge), make(chan struct{}, maxWalks)} }

// slot is that of one call, once it has taken one. It is kept until the answer is written: what a client asks for and
// does not read is in memory too. A nil slot takes none.
type slot struct{ of chan struct{} }

// try takes a slot if one is free, and says whether the call has one now.
func (t *slot) try(of chan struct{}) bool {
	if t == nil || t.of != nil {
		return true
	}
	select {
	case of <- struct{}{}:
		t.of = of
		return true
	default:
		return false
	}
}

// take waits for a slot, unless the call has one already.
func (t *slot) take(ctx context.Context, of chan struct{}) error {
	if t == nil || t.of != nil {
		return nil
	}
	select {
	case of <- struct{}{}:
		t.of = of
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *slot) leave() {
	if t.of != nil {
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
func work(f func(ctx context.Context, r *exchange.Request, t *slot) exchange.Outcome) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		t := &slot{}
		h := exchange.Work(func(ctx context.Context, r *exchange.Request) exchange.Outcome { return f(ctx, r, t) })
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
