package wire

import (
	"crypto/sha256"
	"maps"
	"sync"
)

// Listed is what a server lists page by page, by name. The zero value has nothing. It is safe for concurrent use.
//
// Several clients may page through a list at once, and one may ask for a page again. So a page counts from its coming on, and
// what is listed no more is forgotten only when all pages came from the first on.
type Listed[T any] struct {
	mu    sync.Mutex
	known map[string]T
	begun map[[sha256.Size]byte]map[string]bool // the names of lists that have begun, by the cursor with which they go on, hashed: it has any length
	whole bool
}

// maxBegun is how many lists may have begun. Whoever is cut off only forgets nothing.
const maxBegun = 64

// Learn takes a page: cursor is that of its request, and next that of the page behind it, "" where there is none. Whole says that with
// this page all of a list came.
func (l *Listed[T]) Learn(cursor string, page map[string]T, next string) (whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := sha256.Sum256([]byte(cursor))
	names, goesOn := l.begun[at]
	delete(l.begun, at)
	if cursor == "" {
		names, goesOn = map[string]bool{}, true
	}
	if l.known == nil {
		l.known, l.begun = map[string]T{}, map[[sha256.Size]byte]map[string]bool{}
	}
	for name, v := range page {
		l.known[name] = v
		if goesOn {
			names[name] = true
		}
	}
	switch {
	case !goesOn:
	case next == "":
		maps.DeleteFunc(l.known, func(name string, _ T) bool { return !names[name] })
		l.whole, whole = true, true
	default:
		if len(l.begun) >= maxBegun {
			clear(l.begun)
		}
		l.begun[sha256.Sum256([]byte(next))] = names
	}
	return whole
}

// Get returns what is listed under a name.
func (l *Listed[T]) Get(name string) (T, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.known[name]
	return v, ok
}

// All returns all that is listed, and whether all of a list came once.
func (l *Listed[T]) All() (all map[string]T, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.known), l.whole
}
