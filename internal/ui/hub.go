package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// hub is what all pages that are open follow. It is safe for concurrent use.
type hub struct {
	mu     sync.Mutex
	values map[topic][]byte
	subs   map[*sub]bool
}

// topic is what a value is of: its kind, such as "question", and a key among those.
type topic struct{ kind, key string }

// sub is one page.
type sub struct {
	pending map[topic][]byte // nil for what is gone
	order   []topic
	once    []event // what was said and is kept nowhere
	lost    bool    // some of it was left out
	parted  bool
	wake    chan struct{}
}

type event struct {
	topic
	value []byte
}

const (
	// maxOnce is how much of what is said once waits for a page that is slow.
	maxOnce = 1024
	// maxSubs is how many pages are open at once.
	maxSubs = 32
)

func newHub() *hub { return &hub{values: map[topic][]byte{}, subs: map[*sub]bool{}} }

// set keeps a value under a kind and a key, and tells every page.
func (h *hub) set(kind, key string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic("bug: a value of the page: " + err.Error())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := topic{kind, key}
	if string(h.values[t]) == string(text) {
		return
	}
	h.values[t] = text
	for s := range h.subs {
		s.put(t, text)
	}
}

// drop forgets a value, and tells every page that it is gone.
func (h *hub) drop(kind, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := topic{kind, key}
	if _, ok := h.values[t]; !ok {
		return
	}
	delete(h.values, t)
	for s := range h.subs {
		s.put(t, nil)
	}
}

// tell says something once, to the pages that are open. One that is slow misses some of it, and is told so with the kind
// "lost".
func (h *hub) tell(kind string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic("bug: a value of the page: " + err.Error())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if len(s.once) >= maxOnce {
			s.once, s.lost = s.once[:0], true
		}
		s.once = append(s.once, event{topic{kind: kind}, text})
		s.stir()
	}
}

// open reports whether a page is open.
func (h *hub) open() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) > 0
}

// part ends the streams of all pages.
func (h *hub) part() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		s.parted = true
		s.stir()
	}
}

// follows returns a page that is told everything from now on, or nil if there are too many.
func (h *hub) follows() *sub {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subs) >= maxSubs {
		return nil
	}
	s := &sub{pending: map[topic][]byte{}, wake: make(chan struct{}, 1)}
	for t, v := range h.values {
		s.put(t, v)
	}
	h.subs[s] = true
	return s
}

func (h *hub) leaves(s *sub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
}

// put keeps the latest of a topic until it is taken. The caller holds mu.
func (s *sub) put(t topic, value []byte) {
	if _, waits := s.pending[t]; !waits {
		s.order = append(s.order, t)
	}
	s.pending[t] = value
	s.stir()
}

func (s *sub) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take returns what waits for a page, and whether it is to go.
func (h *hub) take(s *sub) (list []event, parted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range s.order {
		list = append(list, event{t, s.pending[t]})
	}
	if s.lost {
		list = append(list, event{topic{kind: "lost"}, []byte("true")})
	}
	list = append(list, s.once...)
	clear(s.pending)
	s.order, s.once, s.lost = nil, nil, false
	return list, s.parted
}

// quiet is how long nothing is said on a stream before the page hears that it is there.
const quiet = 15 * time.Second

// events is the stream of a page: everything that is kept, a "ready", and then what changes.
func (u *UI) events(w http.ResponseWriter, r *http.Request) {
	s := u.hub.follows()
	if s == nil {
		refuse(w, problem{http.StatusServiceUnavailable, "busy", "too many pages are open"})
		return
	}
	defer u.hub.leaves(s)
	u.mu.Lock()
	known := u.knows(r)
	u.mu.Unlock()
	if !known { // another browser was let in meanwhile, when this page was not yet one of those whose streams end then
		refuse(w, errSession)
		return
	}
	c := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	ready := event{topic{kind: "ready"}, fmt.Appendf(nil, `{"version":%q}`, u.o.Version)}
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for first := true; ; first = false {
		list, parted := u.hub.take(s)
		if parted {
			return
		}
		if first {
			list = append(list, ready)
		}
		c.SetWriteDeadline(time.Now().Add(patience))
		for _, e := range list {
			if e.value == nil {
				e.value = []byte("null")
			}
			key, _ := json.Marshal(e.key)
			if _, err := fmt.Fprintf(w, "event: %s\ndata: {\"key\":%s,\"value\":%s}\n\n", e.kind, key, e.value); err != nil {
				return
			}
		}
		if len(list) == 0 {
			if _, err := w.Write([]byte(": still here\n\n")); err != nil {
				return
			}
		}
		if c.Flush() != nil {
			return
		}
		select {
		case <-s.wake:
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
