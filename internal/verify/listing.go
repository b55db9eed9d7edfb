package verify

import (
	"fmt"
	"slices"

	"github.com/rootbound/rootbound/internal/wire"
)

const (
	// maxPages is how many pages of a list are fetched, maxListed how many bytes of what is listed are kept.
	maxPages  = 100
	maxListed = 16 << 20
)

// list is what a server lists, all its pages as one.
type list struct {
	reply        // the last that came: the first that was refused, or the last page
	items []byte // a JSON array of what is listed
	pages int
	// endless says why the list does not end, "" when it does.
	endless string
}

// listAll fetches a list, page by page.
func (p *peer) listAll(method, member string) list {
	l := list{items: []byte{'['}}
	var had []string
	for cursor := ""; ; {
		params := []byte("{}")
		if l.pages > 0 {
			params = wire.SetMember(params, wire.Quote(cursor), "cursor")
		}
		l.reply = p.request(method, params)
		if !l.ok() {
			break
		}
		l.pages++
		items, _ := wire.Get(l.result, member)
		for item := range wire.Items(items) {
			if len(l.items) > 1 {
				l.items = append(l.items, ',')
			}
			l.items = append(l.items, item...)
		}
		if cursor = wire.GetString(l.result, "nextCursor"); cursor == "" {
			break
		}
		switch {
		case slices.Contains(had, cursor):
			l.endless = "the server gives a page again"
		case l.pages == maxPages:
			l.endless = fmt.Sprintf("it has more than %d pages", maxPages)
		case len(l.items) > maxListed:
			l.endless = fmt.Sprintf("it has more than %d MiB on %d pages", maxListed>>20, l.pages)
		}
		if l.endless != "" {
			break
		}
		had = append(had, cursor)
	}
	l.items = append(l.items, ']')
	return l
}
