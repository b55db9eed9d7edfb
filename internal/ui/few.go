package ui

import (
	"fmt"
	"sync"
	"time"
)

// few tells the person in the terminal of what others can bring about as often as they like: of each kind the first ones at
// once, and of the rest now and then how many there were. It is safe for concurrent use.
type few struct {
	report func(format string, args ...any)

	mu    sync.Mutex
	kinds map[string]*flow
	over  bool
}

// flow is one kind.
type flow struct {
	told  int // at once
	rest  int // how many were not told since, and the last of them
	last  string
	wait  time.Duration // until it is looked at again
	timer *time.Timer   // nil while it rests
}

const (
	// tellAtOnce is how many are told at once, until there was a time without any.
	tellAtOnce = 8
	// tellFirst is when it is told first how many there were, and tellLast how seldom that becomes while they go on.
	tellFirst, tellLast = time.Minute, time.Hour
)

func (f *few) tell(kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	k := f.kinds[kind]
	if k == nil {
		k = &flow{}
		if f.kinds == nil {
			f.kinds = map[string]*flow{}
		}
		f.kinds[kind] = k
	}
	if k.timer == nil {
		k.told, k.wait = 0, tellFirst
		k.timer = time.AfterFunc(k.wait, func() { f.look(k) })
	}
	if k.told < tellAtOnce {
		k.told++
		f.report("%s", text)
		return
	}
	k.rest, k.last = k.rest+1, text
}

// look tells what came meanwhile. If that was nothing, the next ones are told at once again.
func (f *few) look(k *flow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.over:
	case k.rest == 0:
		k.timer = nil
	default:
		f.sum(k)
		k.wait = min(2*k.wait, tellLast)
		k.timer.Reset(k.wait)
	}
}

func (f *few) sum(k *flow) {
	f.report("%d more like this: %s", k.rest, k.last)
	k.rest = 0
}

// end tells what is left, and nothing after that.
func (f *few) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	for _, k := range f.kinds {
		if k.timer != nil {
			k.timer.Stop()
		}
		if k.rest > 0 {
			f.sum(k)
		}
	}
}

// complaints are what net/http says of connections that went wrong.
type complaints struct{ few *few }

func (c complaints) Write(b []byte) (int, error) {
	c.few.tell("http", "serving the page: %.300s", string(b[:max(0, len(b)-1)]))
	return len(b), nil
}
