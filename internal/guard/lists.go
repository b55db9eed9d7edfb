package guard

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/wire"
)

const (
	// maxListed is how many tools, prompts or templates a server may list, and maxListedBytes how long they may be together: stages keep
	// what they learn of them, and a list may have pages without an end.
	maxListed      = 5_000
	maxListedBytes = 16 << 20
)

// lists is how long what a server lists is, by the method and the name.
type lists struct {
	mu    sync.Mutex
	sizes map[string]*wire.Listed[int]
}

// bounded refuses what makes a list longer than stages keep.
func (g *Guard) bounded(server exchange.Handler) exchange.Handler {
	l := &lists{sizes: map[string]*wire.Listed[int]{}}
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		method := r.Msg.Method()
		if _, _, _, listed := pin.List(method); !listed {
			server.Handle(ctx, r, reply)
			return
		}
		cursor := wire.GetString(r.Msg.Params(), "cursor")
		server.Handle(ctx, r, func(o exchange.Outcome) {
			if o.Msg != nil && o.Msg.Result() != nil && !l.take(method, cursor, o.Msg.Result()) {
				text := fmt.Sprintf("the server lists more than %d things, or more than %d MiB of them, in its answers to %s", maxListed, maxListedBytes>>20, method)
				g.once(codeListed, text)
				o = exchange.Fail(r, wire.CodeInternal, "rootbound: "+text+"; what it listed before that can be used", []byte(`{"reason":"list too long"}`))
			}
			reply(o)
		})
	})
}

// codeListed is the code of records about lists.
const codeListed = "list"

// take takes a page of a list, and reports whether that is not too long with it.
func (l *lists) take(method, cursor string, result []byte) bool {
	list, name, _, _ := pin.List(method)
	items, _ := wire.Get(result, list)
	page := map[string]int{}
	for item := range wire.Items(items) {
		page[wire.GetString(item, name)] += len(item)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sizes := l.sizes[method]
	if sizes == nil {
		sizes = new(wire.Listed[int])
		l.sizes[method] = sizes
	}
	all, next := map[string]int{}, wire.GetString(result, "nextCursor")
	if cursor != "" || next != "" { // else the page is all of the list
		listed, _ := sizes.All()
		maps.Copy(all, listed)
	}
	maps.Copy(all, page)
	bytes := 0
	for _, n := range all {
		bytes += n
	}
	if len(all) > maxListed || bytes > maxListedBytes {
		return false
	}
	sizes.Learn(cursor, page, next)
	return true
}
