package roots

import (
	"context"
	"iter"
	"sync"
	"time"
)

// firstStateless is the first revision of MCP without a handshake.
const firstStateless = "2026-07-28"

// List is a client's side of roots, towards one server: the directories that are open, as far as a person consented to
// that server's being told of them and as far as they are there. The zero value tells of nothing.
//
//	list := roots.NewList(roots.NewSet(work)) // what the person let this server know
//	list.Set(project)                         // what is open now
//	answer := list.Roots()                    // to roots/list
//	for range list.Changes(ctx) {             // send notifications/roots/list_changed
//	}
//
// The methods are safe for concurrent use.
type List struct {
	mu        sync.Mutex
	consented Set
	open      []Dir
	news      chan struct{} // closed with the next change; nil when nobody waits
}

// NewList makes a list of directories of which the server may be told: all of them are open.
func NewList(consented Set) *List {
	return &List{consented: consented, open: consented.Dirs()}
}

// Declare returns what a client with a list declares in a revision of MCP: roots in each, and that it tells of changes in
// those that have a word for it, which are the ones before 2026-07-28. As a member of its capabilities that is
// {"listChanged":true}, and {} where it does not tell.
func (l *List) Declare(revision string) Client {
	return Client{Roots: true, ListChanged: revision < firstStateless}
}

// Set says which directories are open now, in the order in which they are told.
func (l *List) Set(open ...Dir) {
	l.change(func() { l.open = NewSet(open...).dirs })
}

// Consent says of which directories the server may be told: these, and what is in them, with at most those rights. What was
// told before is not taken back, and what is no longer consented to is not told again.
func (l *List) Consent(consented Set) {
	l.change(func() { l.consented = consented })
}

// Roots returns the answer to roots/list: what is open, consented to, and found on the disk, at which it looks. It is
// empty, and not nil, where there is nothing.
func (l *List) Roots() []Root {
	list := l.now().Roots()
	if list == nil {
		list = []Root{}
	}
	return list
}

// Waiting returns what is open and not told, since nobody consented to it.
func (l *List) Waiting() Set {
	_, waiting := l.split()
	return NewSet(waiting...)
}

// Changes yields what Roots returns whenever that is not what it was, counted from the call of Changes, until ctx ends: after
// Set and Consent at once, and within a second when a directory is gone, back, or replaced by another. Changes that
// come faster than they are taken are one.
func (l *List) Changes(ctx context.Context) iter.Seq[[]Root] {
	last := l.now()
	return func(yield func([]Root) bool) {
		tick := time.NewTicker(lookAfter)
		defer tick.Stop()
		for {
			l.mu.Lock()
			if l.news == nil {
				l.news = make(chan struct{})
			}
			news := l.news
			l.mu.Unlock()
			if now := l.now(); !now.Equal(last) {
				last = now
				if ctx.Err() != nil || !yield(now.Roots()) {
					return
				}
			}
			select {
			case <-news:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (l *List) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
}

// now returns what is told now.
func (l *List) now() Set {
	consented, _ := l.split()
	var told []Dir
	for _, d := range consented {
		if d, err := d.Refresh(); err == nil {
			told = append(told, d)
		}
	}
	return NewSet(told...)
}

// split parts what is open by whether it is consented to. What is left out of it by a hole, that needs no consent.
func (l *List) split() (consented, waiting []Dir) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var holes []Dir
	for _, d := range l.open {
		if d.Access == 0 {
			holes = append(holes, d)
		}
	}
	for _, d := range l.open {
		if l.consented.Covers(NewSet(append(holes[:len(holes):len(holes)], d)...)) {
			consented = append(consented, d)
		} else {
			waiting = append(waiting, d)
		}
	}
	return consented, waiting
}
