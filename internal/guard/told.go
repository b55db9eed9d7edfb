package guard

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/roots"
)

// CodeStarted marks the record of a start with roots in the command line, by which a server is told of them.
const CodeStarted = "started"

// Told is that a server was told of a directory, by whatever gave it, and when it was last.
type Told struct {
	Server, Dir string
	Last        time.Time
}

// ToldOf returns which servers were told of which directories, as far as entries of the log say it, by server and directory. Entries
// that cannot be read are passed over, and reported.
func ToldOf(entries iter.Seq2[calllog.Entry, error], report func(error)) ([]Told, error) {
	type key struct{ server, dir string }
	last := map[key]time.Time{}
	for e, err := range entries {
		var unreadable *calllog.UnreadableError
		switch {
		case errors.As(err, &unreadable):
			report(err)
		case err != nil:
			return nil, err
		case e.Kind == calllog.RootsAnswered && e.To == calllog.Server:
			for _, r := range e.Roots {
				if path, err := roots.ParseURI(r.URI); err == nil {
					last[key{e.Server, path}] = e.Time
				}
			}
		case e.Kind == calllog.RootsChanged && e.Code == CodeStarted:
			for _, d := range e.After {
				last[key{e.Server, d.Path}] = e.Time
			}
		}
	}
	var list []Told
	for k, at := range last {
		list = append(list, Told{k.server, k.dir, at})
	}
	slices.SortFunc(list, func(a, b Told) int { return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Dir, b.Dir)) })
	return list, nil
}
